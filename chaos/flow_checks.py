"""What the flow of work promises: bounds hold though posts wait, dead letters lie in one place, and output is
whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from flow import GRAVE, LETTERS, NARROW, ROOM
from journal import Call

NEVER = float("inf")


class FlowChecks:
    """A part of the checker."""

    replicated: bool
    wrong: list[str]
    of: dict[str, list[Call]]
    claims: list[tuple[Call, str, int, str]]
    counted: Counter
    certain: Callable[[Call], bool]

    def check_flow(self) -> None:
        self.room_is_kept()
        self.refused_posts_are_not_there()
        self.dead_letters_lie_in_one_place()
        self.output_is_whole()

    def room_is_kept(self) -> None:
        """A queue never has more jobs than its bound, also while posts wait for room."""
        if self.replicated:
            return
        ended: dict[str, float] = {}
        for call in self.of["consume"]:
            if not call.refused:
                id = call.about["id"]
                ended[id] = min(ended.get(id, NEVER), call.begin)
        edges = []
        for call in self.of["post"]:
            if call.about["queue"] == NARROW and call.answered:
                self.counted["posts into a queue with little room"] += 1
                # Surely there from the answer until somebody tried to end it.
                until = ended.get(call.about["id"], NEVER)
                if call.end < until:
                    edges += [(call.end, 1), (until, -1)]
        there = 0
        for _, step in sorted(edges):
            there += step
            if there > ROOM:
                self.wrong.append(f"{there} jobs were in the queue {NARROW}, which has room for {ROOM}")

    def refused_posts_are_not_there(self) -> None:
        """A post that waited in vain has posted nothing."""
        given = {id for _, id, _, _ in self.claims}
        for call in self.of["post"]:
            if call.refused and (call.error or "").startswith("LIMIT"):
                self.counted["posts that waited in vain"] += 1
                if call.about["id"] in given:
                    self.wrong.append(f"the post {call.about['id']} was refused, and is there")

    def dead_letters_lie_in_one_place(self) -> None:
        """A job that died is claimed from the dead queue, until somebody may have sent it back."""
        back: dict[str, float] = {}
        for call in self.of["requeue"]:
            if not call.refused:
                id = call.about["id"]
                back[id] = min(back.get(id, NEVER), call.begin)
        died = {
            call.about["id"]: call.end
            for call in self.of["fail"]
            if self.certain(call) and call.reply.get("dead") == GRAVE
        }
        self.counted["jobs that died"] += len(died)
        self.counted["dead letters sent back"] += sum(self.certain(call) for call in self.of["requeue"])
        for call, id, _, queue in self.claims:
            if id in died and died[id] < call.begin and back.get(id, NEVER) > call.end and queue == LETTERS:
                self.wrong.append(f"{id} had died, and was claimed from {queue}")

    def output_is_whole(self) -> None:
        """A reader sees each chunk of a run once and in order, and all that were written before it asked."""
        written: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
        for call in self.of["write"]:
            if self.certain(call):
                written[call.about["id"]].append((call.end, call.about["token"], call.about["number"]))
        self.counted["chunks written"] += sum(map(len, written.values()))
        for call in self.of["read"]:
            if not self.certain(call) or not call.reply or not call.reply["chunks"]:
                continue
            seen = [tuple(map(int, chunk.split())) for chunk in call.reply["chunks"]]
            runs: dict[int, list[int]] = defaultdict(list)
            for token, number in seen:
                runs[token].append(number)
            self.counted["chunks read"] += len(seen)
            for token, numbers in runs.items():
                if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                    self.wrong.append(f"the output of {call.about['id']} under {token} was {numbers}")
                wrote = [n for end, of, n in written[call.about["id"]] if of == token and end < call.begin]
                if wrote and max(wrote) > numbers[-1]:
                    self.wrong.append(
                        f"chunk {max(wrote)} of {call.about['id']} was written, and a reader saw {numbers}"
                    )

"""Decides from what all clients wrote down whether the server has kept its word."""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from actors import LIMIT
from flow_checks import FlowChecks
from journal import Call

ENDS = ("consume", "fail", "abandon", "await")
"""Calls with which a worker gives a job up, or may do so."""
NEVER = float("inf")


class Checker(FlowChecks):
    """The calls of a run, and what was found wrong with them.

    A node that has been deposed may answer for a moment as if it were not: what a replicated run promises, it
    promises of durable answers (WAIT for both replicas) only. `jumps` are moments at which the boards' clock
    went ahead of time: no lease is sure to last over one. `backs` are those at which it may have gone back:
    the order of a group is that of times, so posts before and after one may come the other way round.
    """

    def __init__(
        self, calls: list[Call], replicated: bool, jumps: Sequence[float] = (), backs: Sequence[float] = ()
    ) -> None:
        self.calls, self.replicated = calls, replicated
        self.jumps, self.backs = sorted(jumps), sorted(backs)
        self.wrong: list[str] = []
        self.of: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            self.of[call.verb].append(call)
        self.remembered: list[tuple[Call, dict]] = []
        """Jobs as the claims gave them out that asked for steps and signals."""
        self.claims = list(self._claimed())
        self.counted: Counter = Counter()

    def _claimed(self) -> Iterator[tuple[Call, str, int, str]]:
        for call in self.of["claim"]:
            for job in call.reply or []:
                yield call, job["id"], job["token"], job["queue"]
                if "remembers" in call.about:
                    self.remembered.append((call, job))
        for call in self.of["consume"]:
            # With a claim at its end, the reply is a pair.
            for job in (call.reply[1] if isinstance(call.reply, list) else None) or []:
                yield call, job["id"], job["token"], job["queue"]

    def certain(self, call: Call) -> bool:
        """Whether it was answered for good: not by a node that may have been deposed."""
        return call.answered and (call.durable or not self.replicated)

    def check(self) -> list[str]:
        """All that is wrong, each in a sentence."""
        self.posts_are_kept()
        self.tokens_are_of_one_claim()
        self.tokens_rise()
        self.consumed_once()
        self.held_by_one()
        self.limits_hold()
        self.dependencies_hold()
        self.order_is_kept()
        self.children_are_whole()
        self.parents_wait()
        self.steps_stay()
        self.signals_stay()
        self.check_flow()
        return self.wrong

    def _count(self, what: str, n: int = 1) -> None:
        self.counted[what] += n

    def posts_are_kept(self) -> None:
        """What was posted for good was done: the drain after the run has taken the rest."""
        perhaps = {call.about["id"] for call in self.of["consume"] if not call.refused}
        for call in self.of["post"]:
            if self.certain(call):
                self._count("posts that had to be there")
                if call.about["id"] not in perhaps:
                    self.wrong.append(f"the job {call.about['id']} was acknowledged and is lost")

    def tokens_are_of_one_claim(self) -> None:
        """Also those that a node gave out which had been deposed."""
        holders: dict[int, tuple[str, str]] = {}
        for call, id, token, _ in self.claims:
            if not call.answered:
                continue
            self._count("claims")
            who = (id, call.about["worker"])
            if holders.setdefault(token, who) != who:
                self.wrong.append(f"the token {token} was given to {holders[token]} and to {who}")

    def tokens_rise(self) -> None:
        """A claim that began after another had been answered has the higher token."""
        ended: list[tuple[float, int]] = []
        highest = 0
        certain = [found for found in self.claims if self.certain(found[0])]
        for call, id, token, _ in sorted(certain, key=lambda found: found[0].begin):
            while ended and ended[0][0] < call.begin:
                highest = max(highest, heapq.heappop(ended)[1])
            if token <= highest:
                self.wrong.append(f"the claim of {id} got the token {token}, not above {highest}")
            heapq.heappush(ended, (call.end, token))

    def consumed_once(self) -> None:
        done: dict[str, Call] = {}
        for call in self.of["consume"]:
            if not call.answered:
                continue
            self._count("jobs consumed")
            id = call.about["id"]
            first = done.get(id)
            if first is None:
                done[id] = call
            elif not self.replicated or (first.durable and first.end < call.begin):
                self.wrong.append(f"{id} was consumed under {first.about['token']} and {call.about['token']}")
            elif call.durable and not first.durable:
                done[id] = call

    def _holds(self) -> Iterator[tuple[float, float, Call, str, str]]:
        """From when until when a worker surely held a job: its lease not over, nothing said that ends it.

        The server counts whole milliseconds: a lease that begins late in one ends early in another.
        """
        said: dict[tuple[str, int], float] = {}
        for verb in ENDS:
            for call in self.of[verb]:
                key = (call.about["id"], call.about["token"])
                said[key] = min(said.get(key, NEVER), call.begin)
        for call, id, token, queue in self.claims:
            if call.about["session"] or not call.answered:
                continue
            until = min(call.begin + (call.about["lease"] - 1) / 1000, said.get((id, token), NEVER))
            after = bisect.bisect_left(self.jumps, call.begin)
            until = min([until, *self.jumps[after : after + 1]])
            if call.end < until:
                yield call.end, until, call, id, queue

    def held_by_one(self) -> None:
        """While one surely holds a job, nobody else gets it. With replicas a claim itself may be lost."""
        if self.replicated:
            return
        by_job: dict[str, list[tuple[float, float, Call]]] = defaultdict(list)
        for begin, until, call, id, _ in self._holds():
            by_job[id].append((begin, until, call))
        for other, id, token, _ in self.claims:
            for begin, until, call in by_job.get(id, []):
                if call is not other and begin < other.begin and other.end < until:
                    self.wrong.append(f"{id} was given to {other.actor} ({token}) while {call.actor} held it")

    def limits_hold(self) -> None:
        if self.replicated:
            return
        edges = []
        for begin, until, _, _, queue in self._holds():
            if queue == "limited":
                edges += [(begin, 1), (until, -1)]
        running = 0
        for _, step in sorted(edges):
            running += step
            self.counted["most jobs of the limited queue at once"] = max(
                self.counted["most jobs of the limited queue at once"], running
            )
            if running > LIMIT:
                self.wrong.append(f"{running} jobs of the queue limited ran at once")

    def _done_before(self, needs: dict[str, list[str]]) -> None:
        """A job is claimed only after somebody has tried to consume those that come before it."""
        tried: dict[str, float] = {}
        for call in self.of["consume"]:
            if not call.refused:
                id = call.about["id"]
                tried[id] = min(tried.get(id, NEVER), call.begin)
        posted = {call.about["id"] for call in self.of["post"] if self.certain(call)}
        for call, id, _, _ in self.claims:
            for other in needs.get(id, []):
                # What a deposed node alone has seen never existed, and counts as met.
                if other in posted and tried.get(other, NEVER) > call.end:
                    self.wrong.append(f"{id} was claimed before {other}, which comes first, was done")

    def dependencies_hold(self) -> None:
        needs = {call.about["id"]: call.about["after"] for call in self.of["post"] if call.about["after"]}
        self._done_before(needs)
        self._count("dependencies", len(needs))

    def order_is_kept(self) -> None:
        """Jobs of one ordered group that one producer has posted come one after the other."""
        end = {call.about["id"]: call.end for call in self.of["post"]}

        def turned(call: Call) -> bool:
            """Whether the clock went back between the post before it and its own."""
            first, last = end.get(call.about["before"], 0), call.end
            return bisect.bisect_left(self.backs, first - 1) < bisect.bisect_right(self.backs, last)

        posts = [call for call in self.of["post"] if call.about.get("before") and not turned(call)]
        self._done_before({call.about["id"]: [call.about["before"]] for call in posts})
        self._count("jobs in strict order", len(posts))

    def children_are_whole(self) -> None:
        """The schedule has posted its children one by one, none twice and none left out."""
        seen = {int(id.rsplit("@", 1)[1]) for _, id, _, _ in self.claims if id.startswith("@tick@")}
        if seen:
            missing = set(range(1, max(seen) + 1)) - seen
            self._count("children of the schedule", len(seen))
            if missing and not self.replicated:
                self.wrong.append(f"children of the schedule are missing: {sorted(missing)[:10]}")

    def parents_wait(self) -> None:
        """A parent that waited for its children runs again only when each of them has ended."""
        begun: dict[str, float] = {}
        for call in self.of["consume"]:
            if not call.refused:
                id = call.about["id"]
                begun[id] = min(begun.get(id, NEVER), call.begin)
        posted: dict[str, list[Call]] = defaultdict(list)
        for call in self.of["post"]:
            if "parent" in call.about and self.certain(call):
                posted[call.about["parent"]].append(call)
        for call in self.of["await"]:
            if "children" not in call.about or not self.certain(call):
                continue
            if call.reply["state"] != "claimed":
                self._count("waits for children")
                continue
            for child in posted[call.about["id"]]:
                self._count("children that a parent has waited for")
                if child.end < call.begin and begun.get(child.about["id"], NEVER) > call.end:
                    self.wrong.append(f"{call.about['id']} ran on, and {child.about['id']} had not ended")

    def steps_stay(self) -> None:
        """A step that was stored for good keeps its value, and every later run of the job sees it."""
        stored: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
        for call in sorted(self.of["step"], key=lambda call: call.end):
            if not self.certain(call):
                continue
            id, step = call.about["id"], call.about["step"]
            value = call.reply.get("value", call.about["value"])
            since, first = stored[id].setdefault(step, (call.end, value))
            if since < call.begin and value != first:
                self.wrong.append(f"the step {step} of {id} was {first!r}, and {value!r} later")
        self._count("steps stored", sum(map(len, stored.values())))
        for call, job in self.remembered:
            for step, (since, value) in stored[job["id"]].items() if self.certain(call) else []:
                if since < call.begin:
                    self._count("steps that a later run saw")
                    seen = job.get("steps", {}).get(step, {}).get("value")
                    if seen != value:
                        self.wrong.append(
                            f"the step {step} of {job['id']} was {value!r}, and a run saw {seen!r}"
                        )

    def signals_stay(self) -> None:
        """A signal that was taken for good ends the wait for it, and every later run of the job sees it."""
        taken: dict[str, tuple[float, str]] = {}
        for call in sorted(self.of["signal"], key=lambda call: call.end):
            if self.certain(call) and call.reply[0] in ("woken", "kept"):
                id, value = call.about["id"], call.about["value"]
                if id in taken:
                    self.wrong.append(f"{id} took the signal {taken[id][1]!r}, and {value!r} too")
                taken.setdefault(id, (call.end, value))
        self._count("signals taken", len(taken))
        seen = [(call, job["id"], job.get("signals", {})) for call, job in self.remembered]
        seen += [(call, call.about["id"], (call.reply or {}).get("signals", {})) for call in self.of["await"]]
        for call, id, signals in seen:
            if id in taken and self.certain(call) and taken[id][0] < call.begin:
                self._count("signals that a later run saw")
                values = [signal["value"] for signal in signals.values()]
                if values != [taken[id][1]]:
                    self.wrong.append(f"{id} took the signal {taken[id][1]!r}, and a run saw {values}")

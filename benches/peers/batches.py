"""This module, a hundred jobs a command."""

from __future__ import annotations

from wire import encode, fields

from peers import PAYLOAD, jobboard

BATCH = 100
BOARD = jobboard.BOARD


class Peer(jobboard.Peer):
    title = "jobboard, 100 a command"
    most = 1_000_000
    why = "its structures are those of single commands"

    def post(self, count: int) -> None:
        self.wire.pipeline(
            [encode("JOB.MPOST", BOARD, BATCH, *[PAYLOAD] * BATCH)] * (count // BATCH), self.deep
        )

    def claim(self, count: int) -> list:
        command = encode("JOB.CLAIM", BOARD, "w", "COUNT", BATCH, "LEASE", 3_600_000)
        return self.wire.pipeline([command] * (count // BATCH), self.deep)

    def end(self, held: list) -> None:
        commands = []
        for claim in held:
            jobs = [fields(one) for one in claim]
            ids, tokens = [job[b"id"] for job in jobs], [job[b"token"] for job in jobs]
            commands.append(
                encode("JOB.MCONSUME", BOARD, "w", len(ids), *ids, "TOKENS", len(tokens), *tokens)
            )
        self.wire.pipeline(commands, self.deep)

    @property
    def deep(self) -> int:
        return max(self.depth // BATCH, 1)

    def blocked(self) -> None:
        return None

    def recoveries(self, samples: int) -> None:
        return None

    def late(self, samples: int) -> None:
        return None

    def worker(self) -> None:
        return None

"""Clients that wait: a connection each, which has sent a blocking command and not yet read its reply."""

from __future__ import annotations

import re
import select
from typing import Any

import redis
from harness import Server, options, record, wait_until
from harness.waiting import PATIENCE


class Parked:
    """A connection of its own that has sent a blocking command.

    Constructed, it waits in the server, or has waited: a short wait may be over before anybody looks.
    """

    worker = "a client"

    def __init__(
        self,
        server: Server,
        words: tuple,
        db: int = 0,
        protocol: int = 3,
        await_block: bool = True,
        login: dict | None = None,
    ) -> None:
        self.server = server
        client = server.client(db=db, protocol=protocol, **(login or {}))
        self.connection = client.connection_pool.get_connection()
        self.id = self._ask("CLIENT", "ID")
        self.send(*words)
        if await_block:
            wait_until(lambda: self.is_blocked() or self.answered(), what=f"{self.worker} waits")

    def _ask(self, *words: Any) -> Any:
        self.connection.send_command(*words)
        return self.connection.read_response()

    def send(self, *words: Any) -> None:
        self.connection.send_command(*words)

    def is_blocked(self) -> bool:
        with self.server.connect() as client:
            flags = re.search(r" flags=(\S+)", client.execute_command("CLIENT", "LIST", "ID", self.id))
        return flags is not None and "b" in flags[1]

    def answered(self, within: float = 0.0) -> bool:
        """Whether a reply has come."""
        readable, _, _ = select.select([self.connection._sock], [], [], within)
        return bool(readable)

    def answer(self, within: float = 30.0) -> Any:
        """The reply as it came; raises its error."""
        assert self.answered(within * PATIENCE), f"{self.worker} got no reply"
        return self.connection.read_response()

    def reply(self, within: float = 30.0) -> list | None:
        """The records with which it was answered, None for the null reply; raises its error."""
        found = self.answer(within)
        return None if found is None else [record(one) for one in found]

    def still_waits(self) -> bool:
        """No reply has come, and the server holds the client blocked."""
        return not self.answered(0.02) and self.is_blocked()

    def close(self) -> None:
        self.connection.disconnect()


class Waiter(Parked):
    """One blocked claim: `Waiter(server, "w1", queues=["mail"])`."""

    def __init__(
        self,
        server: Server,
        worker: str = "w1",
        block: int = 0,
        key: str = "board",
        db: int = 0,
        protocol: int = 3,
        await_block: bool = True,
        login: dict | None = None,
        **claim_options: Any,
    ) -> None:
        self.worker = worker
        words = ("JOB.CLAIM", key, worker, "BLOCK", block, *options(**claim_options))
        super().__init__(server, words, db, protocol, await_block, login)

    def job(self) -> str:
        """The id of the one job with which the claim was answered."""
        found = self.reply()
        assert found is not None and len(found) == 1, f"{self.worker} got {found}"
        return found[0]["id"]


class Watcher(Parked):
    """One `JOB.WAIT`: `Watcher(server, "JOBS", 1, "j", "ANY")`."""

    def __init__(self, server: Server, *words: Any, ms: int = 0, key: str = "board", **how: Any) -> None:
        super().__init__(server, ("JOB.WAIT", key, ms, *words), **how)


class Poster(Parked):
    """One post that waits for room: `Poster(server, id="a")`."""

    worker = "a producer"

    def __init__(
        self,
        server: Server,
        payload: Any = "payload",
        block: int = 0,
        key: str = "board",
        db: int = 0,
        protocol: int = 3,
        await_block: bool = True,
        login: dict | None = None,
        **post_options: Any,
    ) -> None:
        words = ("JOB.POST", key, payload, "BLOCK", block, *options(**post_options))
        super().__init__(server, words, db, protocol, await_block, login)


def blocked_clients(server: Server) -> int:
    return server.info("clients")["blocked_clients"]


def error_of(waiter: Parked) -> str:
    """The error with which it was answered."""
    try:
        found = waiter.reply()
    except redis.ResponseError as error:
        code = getattr(error, "status_code", None)
        return f"{code} {error}" if code else str(error)
    raise AssertionError(f"{waiter.worker} got {found}, not an error")

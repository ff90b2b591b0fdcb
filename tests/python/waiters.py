"""Workers that wait: a connection each, which has sent a blocking claim and not yet read its reply."""

from __future__ import annotations

import re
import select
from typing import Any, Optional

import redis
from harness import Server, options, record, wait_until


class Waiter:
    """One blocked claim: `Waiter(server, "w1", queues=["mail"])`. Constructed, it waits in the server."""

    def __init__(
        self,
        server: Server,
        worker: str = "w1",
        block: int = 0,
        key: str = "board",
        db: int = 0,
        protocol: int = 3,
        await_block: bool = True,
        **claim_options: Any,
    ) -> None:
        self.server = server
        self.worker = worker
        client = server.client(db=db, protocol=protocol)
        self.connection = client.connection_pool.get_connection()
        self.id = self._ask("CLIENT", "ID")
        self.send("JOB.CLAIM", key, worker, "BLOCK", block, *options(**claim_options))
        if await_block:
            wait_until(self.is_blocked, what=f"{worker} waits")

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

    def reply(self, within: float = 5.0) -> Optional[list]:
        """The records with which the claim was answered, None for the null reply; raises its error."""
        assert self.answered(within), f"{self.worker} got no reply"
        found = self.connection.read_response()
        return None if found is None else [record(one) for one in found]

    def job(self) -> str:
        """The id of the one job with which the claim was answered."""
        found = self.reply()
        assert found is not None and len(found) == 1, f"{self.worker} got {found}"
        return found[0]["id"]

    def still_waits(self) -> bool:
        """No reply has come, and the server holds the client blocked."""
        return not self.answered(0.02) and self.is_blocked()

    def close(self) -> None:
        self.connection.disconnect()


def blocked_clients(server: Server) -> int:
    return server.info("clients")["blocked_clients"]


def error_of(waiter: Waiter) -> str:
    """The error with which the claim was answered."""
    try:
        found = waiter.reply()
    except redis.ResponseError as error:
        code = getattr(error, "status_code", None)
        return f"{code} {error}" if code else str(error)
    raise AssertionError(f"{waiter.worker} got {found}, not an error")

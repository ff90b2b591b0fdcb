"""The thread that hears at once when a job is lost or to be cancelled."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from typing import Any

import redis

from ..connecting import BROKEN, TROUBLE
from ..replies import data, text
from .backoff import Backoff
from .engine import Engine

log = logging.getLogger("jobboard.worker")


class Listener(threading.Thread):
    """Subscribes to the worker's channel. Without it cancels are seen at the next heartbeat."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="jobboard-listener", daemon=True)
        self.engine = engine
        channels = {f"job.worker:{text(shard.key)}:{text(engine.name)}": shard.key for shard in engine.shards}
        self.boards = {data(channel): key for channel, key in channels.items()}
        """The keys of the boards, by the channels on which the server publishes to this worker."""
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def run(self) -> None:
        backoff = Backoff()
        while not self.closed.is_set():
            pubsub: Any = None
            senders = self.engine.senders
            # A cluster's client listens at the node of the first channel. Each node hears of all.
            channels = sorted(self.boards, key=lambda channel: senders[self.boards[channel]].failed)
            home = senders[self.boards[channels[0]]]
            try:
                pubsub = self.engine.board.client.pubsub()  # type: ignore[no-untyped-call]
                pubsub.subscribe(*channels)
                while not self.closed.is_set():
                    if home.failed and not home.alone:
                        raise ConnectionError("the node of the subscription does not answer")
                    message = pubsub.get_message(timeout=1.0)
                    if message is not None:
                        self._hear(message)
                        backoff.reset()
            except (*TROUBLE, *BROKEN) as error:
                log.debug("not listening: %s", error)
                if not home.alone:
                    home.beat_soon()  # which tells whether its node is away
                backoff.wait(self.closed)
            except redis.RedisError as error:
                log.warning("cancels are seen at heartbeats only: %s", error)
                return
            finally:
                if pubsub is not None:
                    with contextlib.suppress(Exception):
                        pubsub.close()

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe" and message["data"] == len(self.boards):
            # All are subscribed: at first, and where redis-py has connected anew by itself.
            self.engine.listens()
        if message["type"] != "message":
            return
        event = json.loads(message["data"])
        board = self.boards[data(text(message["channel"]))]
        run = self.engine.find(board, event.get("token", 0))
        if run is None:
            return
        if event["event"] == "cancel":
            self.engine.cancel(run)
        elif event["event"] == "grace":
            run.sender.beat_soon()  # the lease is over: whoever is quick keeps the job
        elif event["event"] != "lost":
            return  # a later server's
        elif event.get("reason") == "lapsed":
            self.engine.lapsed(run)
            run.sender.beat_soon()  # a late heartbeat takes the job back, if nobody else has it
        elif not run.ended:
            self.engine.lose(run, event.get("reason", ""))

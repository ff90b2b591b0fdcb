"""A channel: kombu's virtual channel over a board. Its queues are queues of the board, bindings are sets."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads

from .. import replies
from ..arguments import check_flag
from ..durations import to_ms
from ..errors import NoJob
from . import messages
from .addresses import CHANNEL_OPTIONS
from .fanout import Listener, channel_name, is_pattern
from .holding import MANY, UNCOUNTED, Claimed, Demand, Holder

log = logging.getLogger("jobboard.celery")

LEASE = "30s"
ORDERS = {"best": "best", "round_robin": "rotate", "sorted": "listed", "priority": "listed"}
"""Values of `queue_order_strategy`, as words of JOB.CLAIM. kombu's own come first of priorities, then of
queues; so does `best`, of which they are all but the last."""

PRIORITIES: dict[str, Callable[[int], int]] = {"lowest": lambda one: -one, "highest": lambda one: one}
"""Which of two priorities of Celery comes first."""

SEPARATOR = "\x06\x16"
"""Between the parts of a binding."""


class QoS(virtual.QoS):
    """What was delivered and not acknowledged. The delivery tag of a message is the token of its claim."""

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.channel.holder.end(int(delivery_tag), "JOB.CONSUME", "FORCE")

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().ack(delivery_tag)
        if requeue:
            self.channel.holder.end(int(delivery_tag), "JOB.ABANDON", "REASON", "requeued")
        else:
            self.channel.holder.end(int(delivery_tag), "JOB.TRASH", "REASON", "rejected")

    def restore_unacked(self) -> list[Any]:
        self._flush()
        self.channel.holder.give_back([int(tag) for tag in self._delivered])
        self._delivered.clear()
        return []


class Channel(virtual.Channel):
    QoS = QoS

    do_restore = True
    supports_fanout = True

    board: str | None = None
    lease: Any = LEASE
    session = False
    queue_order_strategy = "best"
    priority_order = "lowest"
    fanout_patterns = True

    from_transport_options = (*virtual.Channel.from_transport_options, *CHANNEL_OPTIONS)

    def __init__(self, connection: Any, **options: Any) -> None:
        super().__init__(connection, **options)
        for flag in ("session", "fanout_patterns"):
            check_flag(getattr(self, flag), flag)
        self._priority = _one_of(PRIORITIES, self.priority_order, "priority_order")
        self._no_ack: set[str] = set()
        self._undelivered: deque[Claimed | Exception] = deque()
        """What the claiming thread has brought, and kombu's thread not yet given out. Under `holder.changed`,
        as is:"""
        self._delivering = 0
        self._fanout_queues: dict[str, tuple[str, str]] = {}
        """The exchange and the routing key of queues that are bound to a fanout exchange."""
        self._topics: dict[str, str] = {}
        """The queue of each channel or pattern that is listened to."""
        self._listener: Listener | None = None
        self.jobs = connection.jobs
        self.client = connection.redis
        self.holder = Holder(
            self.client,
            self.jobs.key,
            lease=to_ms(self.lease, "lease"),
            order=_one_of(ORDERS, self.queue_order_strategy, "queue_order_strategy"),
            session=self.session,
            demand=self._demand,
            arrived=self._arrived,
            outage=connection.outage,
        )
        self.qos  # noqa: B018 - it is made here, and not by the thread that claims

    # Publishing

    def encode_body(self, body: Any, encoding: str | None = None) -> tuple[Any, str | None]:
        """Text stays readable; other bytes become base64."""
        if isinstance(body, bytes):
            return self.codecs["base64"].encode(body), "base64"
        return body, "utf-8"

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        payload, options = messages.encode(message), messages.options(message, queue, self._rank)
        first, second = messages.ids(message, queue)
        if self.jobs.post(payload, id=first, **options) is None and not self._is_there(first, message, queue):
            self.jobs.post(payload, id=second, **options)

    def _is_there(self, id: str, message: dict[str, Any], queue: str) -> bool:
        """Whether the job of this id is this very message: redis-py has sent the post again."""
        try:
            found = self.jobs.get(id, fields=["queue", "payload"])
        except NoJob:
            return False
        if found is None or found.queue != queue:
            return False
        there = messages.decode(found.payload_bytes or b"")
        return there is not None and messages.tag_of(there) == messages.tag_of(message)

    def _rank(self, priority: Any) -> int:
        try:
            rank: int = self._priority(int(priority))
        except (TypeError, ValueError):
            return 0
        return rank

    def _put_fanout(self, exchange: str, message: dict[str, Any], routing_key: str, **_: Any) -> None:
        self.client.publish(self._topic(exchange, routing_key), dumps(message))

    def _topic(self, exchange: str, routing_key: str) -> str:
        key = routing_key if self.fanout_patterns else ""
        return channel_name(self.connection.db, self.jobs.key, exchange, key or "")

    # Consuming

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **options: Any
    ) -> None:
        if no_ack:
            self._no_ack.add(queue)
        else:
            self._no_ack.discard(queue)
        super().basic_consume(queue, no_ack, callback, consumer_tag, **options)
        if queue in self._fanout_queues:
            self._listen(queue)
        else:
            self.holder.wake()

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        for topic in [one for one, of in self._topics.items() if of == queue]:
            del self._topics[topic]
            if self._listener is not None:
                self._listener.leave(topic)
        self.holder.wake()
        self._give_back()

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self.holder.wake()

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> Any:
        found = self.holder.get(queue)
        while found is not None:
            raw = self._read(found)
            if raw is not None:
                message = self.Message(raw, channel=self)
                if no_ack:
                    self.holder.end(found.token, "JOB.CONSUME", "FORCE")
                else:
                    self.qos.append(message, message.delivery_tag)
                return message
            found = self.holder.get(queue)
        return None

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        while (found := self.holder.get(queue)) is not None:
            raw = self._read(found)
            if raw is not None:
                return raw
        raise Empty

    def _demand(self) -> Demand:
        queues = tuple(sorted({one for one in self._active_queues if one not in self._fanout_queues}))
        qos, told = self.qos, "can_consume" not in vars(self.qos)
        kept = not self._no_ack.issuperset(queues)
        if not queues or not qos.can_consume():
            return Demand(0, queues, kept, told)
        most = qos.can_consume_max_estimate()
        room = (UNCOUNTED if most is None else min(most, MANY)) - len(self._undelivered) - self._delivering
        return Demand(room if told else min(room, 1), queues, kept, told)

    def _arrived(self, found: Claimed | Exception) -> None:
        """In the claiming thread."""
        with self.holder.changed:
            self._undelivered.append(found)
        self.connection.arrived(self._hand_over)

    def _hand_over(self) -> bool:
        """In kombu's thread: gives a job to its consumer. False when there was none."""
        with self.holder.changed:
            if not self._undelivered:
                return False  # it was given back
            found = self._undelivered.popleft()
            self._delivering += 1
        try:
            if isinstance(found, Exception):
                raise found
            return self._deliver(found)
        finally:
            with self.holder.changed:
                self._delivering -= 1
                self.holder.changed.notify_all()

    def _give_back(self) -> None:
        """What has arrived for consumers that are no longer there."""
        gone: list[Claimed] = []
        with self.holder.changed:
            for found in list(self._undelivered):
                if isinstance(found, Claimed) and found.queue not in self._active_queues:
                    self._undelivered.remove(found)
                    gone.append(found)
        if gone:
            self.holder.give_back([one.token for one in gone])

    def _deliver(self, found: Claimed) -> bool:
        if self.closed or found.queue not in self._active_queues:
            self.holder.give_back([found.token])
            return False
        raw = self._read(found)
        if raw is None:
            return False
        if found.queue in self._no_ack:
            self.holder.end(found.token, "JOB.CONSUME", "FORCE")
        self.connection._deliver(raw, found.queue)
        return True

    def _read(self, found: Claimed) -> dict[str, Any] | None:
        """The envelope of a job. One that is no message is put aside for a person."""
        message = messages.decode(found.payload)
        if message is None or not self._is_decodable(message):
            log.error("the job %s of the queue %s is no message of Celery", found.id, found.queue)
            self.holder.end(found.token, "JOB.TRASH", "REASON", "no message of Celery or kombu")
            return None
        properties = message["properties"]
        properties["delivery_tag"] = str(found.token)
        if found.attempt > 1:
            properties["delivery_info"]["redelivered"] = message["headers"]["redelivered"] = True
        return message

    def _is_decodable(self, message: dict[str, Any]) -> bool:
        """Whether its body can be read, which kombu does in the loop of the worker."""
        try:
            self.decode_body(message.get("body") or "", message["properties"].get("body_encoding"))
        except Exception:  # another encoding, or no base64
            return False
        return True

    def _listen(self, queue: str) -> None:
        exchange, key = self._fanout_queues[queue]
        topic = self._topic(exchange, key)
        if is_pattern(key) and self.fanout_patterns:
            topic = _escaped(self._topic(exchange, "")) + "/" + key
        self._topics[topic] = queue
        if self._listener is None:
            self._listener = Listener(self.client, self._heard, self.connection.outage)
        self._listener.listen(topic)

    def _heard(self, topic: str, data: bytes) -> None:
        """In the listening thread."""
        self.connection.arrived(lambda: self._tell(topic, data))

    def _tell(self, topic: str, data: bytes) -> bool:
        queue = self._topics.get(topic)
        if queue is None or self.closed:
            return False
        try:
            message = loads(bytes_to_str(data))
        except ValueError:
            log.warning("a broadcast of the queue %s is no message: %.200r", queue, data)
            return False
        self.connection._deliver(message, queue)
        return True

    # Queues and bindings

    def _size(self, queue: str) -> int:
        count: int = self.jobs.count(queue=queue, state=["ready", "scheduled"])
        return count

    def _purge(self, queue: str) -> int:
        where: Any = {"queue": queue, "state": ["ready", "scheduled", "blocked"]}
        count: int = self.jobs.delete_where(where).count
        return count

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return bool(self.state.queue_index.get(queue)) or self.jobs.count(queue=queue) > 0

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        if self.typeof(exchange).type == "fanout":
            self._fanout_queues[queue] = (exchange, (routing_key or "").replace("#", "*"))
            return
        self.client.sadd(self._bindings(exchange), _binding(routing_key, pattern, queue))

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: str | None, *_: Any, **__: Any
    ) -> None:
        self.client.srem(self._bindings(exchange), _binding(routing_key, pattern, queue))
        self._purge(queue)

    def get_table(self, exchange: str) -> list[tuple[str, ...]]:
        found: Any = self.client.smembers(self._bindings(exchange))
        return [tuple(replies.text(one).split(SEPARATOR)) for one in found]

    def _bindings(self, exchange: str) -> str:
        return f"{self.jobs.key}:bindings:{exchange}"

    def _restore(self, message: Any) -> None:
        self.holder.end(int(message.delivery_tag), "JOB.ABANDON", "REASON", "restored")

    def close(self) -> None:
        if not self.closed:
            if self._listener is not None and self.holder.mine:
                self._listener.close()
            self.holder.close()
        super().close()


def _one_of(table: dict[str, Any], word: str, name: str) -> Any:
    if word not in table:
        raise ValueError(f"the transport option {name} is one of {', '.join(table)}, not {word!r}")
    return table[word]


def _binding(*parts: str | None) -> str:
    return SEPARATOR.join(part or "" for part in parts)


def _escaped(text: str) -> str:
    """Text in which a pattern's characters stand for themselves."""
    return "".join(f"\\{one}" if one in "*?[]\\^" else one for one in text)

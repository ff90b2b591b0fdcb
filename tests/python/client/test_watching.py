"""Watching a job, the events of a board, and how long completed jobs are kept."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
import redis
import redis.asyncio
from harness import wait_until
from jobboard import AsyncBoard, Board, JobUnknown, ShardedBoard, Worker
from jobboard.board import events
from proxy import Proxy

KEEPING = ["retain-complete", "keep-complete"]


def test_a_job_is_watched_to_its_end(jobs, work) -> None:
    going = threading.Event()

    @jobs.task()
    def walk(context, steps: int) -> str:
        for step in range(steps):
            going.wait(120)
            going.clear()
            context.progress(100 * step / steps, f"step {step}")
            context.flush("2m")
        going.wait(120)
        return "there"

    id = walk.using(delay="1h").post(2)
    seen = []
    for job in jobs.watch(id, timeout="60s"):
        now = (job.state, job.progress, job.stage)
        if now in seen:  # a lease was kept
            continue
        seen.append(now)
        if job.state == "scheduled":
            jobs.update(id, delay="0s")
            work(jobs, concurrency=1)
        elif job.state == "claimed":
            going.set()
    assert [one for one in seen if one[0] != "ready"] == [
        ("scheduled", None, None),
        ("claimed", None, None),
        ("claimed", 0.0, "step 0"),
        ("claimed", 50.0, "step 1"),
        ("complete", 100.0, "step 1"),
    ]
    [last] = jobs.watch(id)
    assert last.result == "there"
    [last] = jobs.watch(id, fields=["name"])
    assert (last.id, last.name, last.state, last.payload) == (id, "walk", "complete", None)


def test_watching_ends_as_it_should(jobs) -> None:
    with pytest.raises(JobUnknown):
        next(iter(jobs.watch("nobody")))
    jobs.post(1, id="a", retain="0s")
    watched = iter(jobs.watch("a", timeout="50ms"))
    assert next(watched).state == "ready"
    with pytest.raises(TimeoutError, match="a has not ended in time"):
        next(watched)
    token = jobs.claim_id("w", "a").token
    watched = iter(jobs.watch("a"))
    assert next(watched).state == "claimed"
    jobs.consume("w", "a", token=token)
    last = next(watched)
    assert (last.id, last.state) == ("a", "complete"), "its record was dropped"
    assert [*watched] == []


def test_a_heartbeat_alone_is_no_change(jobs) -> None:
    jobs.post(1, id="a")
    token = jobs.claim_id("w", "a").token
    watches = [iter(jobs.watch("a", timeout="60s")), iter(jobs.watch("a", fields=["progress"]))]
    assert [next(watched).state for watched in watches] == ["claimed"] * 2
    later = threading.Timer(0.3, lambda: jobs.heartbeat("w", "a", token=token, progress=50))
    for watched in watches:
        if watched is watches[0]:
            jobs.heartbeat("w", "a", token=token)
            later.start()
        else:
            jobs.heartbeat("w", "a", token=token)
        assert next(watched).progress == 50
    later.join()
    jobs.consume("w", "a", token=token)


def test_who_may_not_explain_is_told_so(server, jobs) -> None:
    server.client().execute_command(
        "ACL", "SETUSER", "watcher", "on", ">secret", "~*", "-@all", "+job.wait", "+hello"
    )
    try:
        theirs = Board("board", f"redis://watcher:secret@127.0.0.1:{server.port}")
        with pytest.raises(JobUnknown, match="JOB.EXPLAIN"):
            next(iter(theirs.watch("a")))
    finally:
        server.client().execute_command("ACL", "DELUSER", "watcher")


@pytest.mark.parametrize("kind", ["board", "sharded"])
def test_events_are_heard(server, kind) -> None:
    client = server.client(decode_responses=False)
    board = Board("board", client) if kind == "board" else ShardedBoard("board", client, shards=3)
    with pytest.raises(ValueError, match="publishes no events: board.settings_set.{'events': 'all'}"):
        board.events()
    board.settings_set({"events": "posted,completed,cancelled"})
    with pytest.raises(ValueError, match="publishes no failed or trashed: board.settings_set"):
        board.events("failed", "trashed", "posted")
    with pytest.raises(ValueError, match="there is no event 'complete'; there are posted, "):
        board.events("complete")
    with board.events() as everything, board.events("cancelled") as some:
        ids = [board.post(1, id=name) for name in ("a", "b\udcff", "c")]
        for id in ids:
            board.cancel(id)
        heard = [next(everything) for _ in range(6)]
        assert [next(some).id for _ in ids] == ids
    assert sorted((one.event, one.id) for one in heard) == [
        (kind, id) for kind in ("cancelled", "posted") for id in ids
    ]
    assert heard[0].at and heard[0].version and heard[0].fields["queue"] == "default"
    assert [*everything] == [], "closed"


def test_events_end_when_another_thread_closes_them(jobs, until) -> None:
    jobs.settings_set({"events": "posted"})
    events, heard = jobs.events(), []

    def walk() -> None:
        try:
            heard.extend(one.id for one in events)
            heard.append("end")
        except BaseException as error:
            heard.append(error)

    walking = threading.Thread(target=walk, daemon=True)
    walking.start()
    time.sleep(0.1)  # it waits for an event
    events.close()
    events.close()
    walking.join(120)
    assert heard == ["end"]


@pytest.mark.parametrize("db", ["0", None])
def test_the_number_of_the_database_may_be_text_or_nothing(server, jobs, db) -> None:
    jobs.settings_set({"events": "posted"})
    with Board("board", redis.Redis(port=server.port, db=db)).events() as events:
        jobs.post(1, id="a")
        jobs.client.publish("job.events:board", json.dumps({"event": "posted", "id": "later", "db": 0}))
        assert next(events).id == "a"


def test_what_is_no_event_is_passed_over(jobs) -> None:
    jobs.settings_set({"events": "posted"})
    with jobs.events() as events:
        for garbage in (
            b"",
            b"\xff",
            b"{",
            b"[]",
            b"7",
            b"{}",
            b'{"event":"posted"}',
            b'{"id64":1}',
            b"[" * 99999,
        ):
            jobs.client.publish("job.events:board", garbage)
        jobs.post(1, id="a")
        assert next(events).id == "a"


def test_a_board_of_the_same_name_in_another_database_is_another(server) -> None:
    here, there = (Board("board", redis.Redis(port=server.port, db=db)) for db in (0, 1))
    for board in (here, there):
        board.settings_set({"events": "posted"})
    try:
        with here.events() as events:
            there.post(1, id="theirs")
            here.post(1, id="ours")
            assert next(events).id == "ours"
    finally:
        there.client.flushdb()


def test_a_lost_connection_is_told_of(server, until) -> None:
    proxy = Proxy(server.port)
    board = Board("board", redis.Redis(port=proxy.port))
    direct = Board("board", server.client(decode_responses=False))
    direct.settings_set({"events": "posted"})
    try:
        with board.events() as events:
            direct.post(1, id="a")
            assert next(events).id == "a"
            proxy.cut()
            direct.post(1, id="lost")
            assert next(events).event == "missed"
            direct.post(1, id="b")
            assert next(events).id == "b"
    finally:
        proxy.close()


@pytest.mark.parametrize("how", ["blocking", "asyncio"])
def test_a_silent_connection_is_given_up(server, until, monkeypatch, how) -> None:
    """As of a machine that is gone, or a primary that stands still and has a successor."""
    monkeypatch.setattr(events, "PING_EVERY", 0.2)
    monkeypatch.setattr(events, "SILENCE", 60.0)
    pulses, ending = [], threading.Event()
    take = events.Pulse.take
    monkeypatch.setattr(
        events.Pulse, "take", lambda pulse, message: (pulses.append(pulse), take(pulse, message))
    )
    server.client().execute_command("ACL", "SETUSER", "dumb", "on", ">p", "~*", "&*", "+@all", "-ping")
    proxy = Proxy(server.port)
    user = {"username": "dumb", "password": "p"} if how == "blocking" else {}
    board = Board("board", redis.Redis(port=proxy.port, **user))
    board.settings_set({"events": "posted"})
    heard = []

    async def hear() -> None:
        async with AsyncBoard("board", redis.asyncio.Redis(port=proxy.port)).events() as found:
            async for event in found:
                heard.append(event.event)
                if ending.is_set():
                    return

    def listen() -> None:
        if how == "asyncio":
            asyncio.run(hear())
            return
        with board.events() as found:
            for event in found:
                heard.append(event.event)
                if ending.is_set():
                    return

    walk = threading.Thread(target=listen, daemon=True)
    walk.start()
    direct = Board("board", server.client(decode_responses=False))
    try:
        until(lambda: board.post(1) and heard, what="it listens")
        pulse = until(lambda: pulses)[-1]
        since = pulse.heard
        until(lambda: pulse.heard > since + 3, what="pongs alone")
        assert set(heard) == {"posted"}  # nothing happens, and nothing is missed
        proxy.silence()
        monkeypatch.setattr(events, "SILENCE", 2.0)
        until(lambda: "missed" in heard, what="another connection")
        before = len(heard)
        until(lambda: direct.post(2) and "posted" in heard[before:], what="it hears again")
        ending.set()
        until(lambda: direct.post(3) and not walk.is_alive(), what="the walk has ended")
    finally:
        proxy.close()
        server.client().execute_command("ACL", "DELUSER", "dumb")


def test_asyncio(server, jobs, work) -> None:
    @jobs.task()
    def noop() -> None: ...

    work(jobs)

    async def main() -> None:
        board = AsyncBoard("board", redis.asyncio.Redis(port=server.port))
        await board.settings_set({"events": "completed,posted"})
        async with board.events("completed") as events:
            id = await noop.on(board).post()
            heard = await anext(events)
            assert (heard.event, heard.id) == ("completed", id)
        assert [one async for one in events] == []
        states = [job.state async for job in board.watch(id)]
        assert states == ["complete"]
        with pytest.raises(ValueError, match="publishes no lost"):
            async for _ in board.events("lost"):
                pass
        waiting = asyncio.create_task(anext(aiter(board.events("posted"))))
        while not waiting.done():
            await board.post(1, id="x", replace=True, delay="1h")
            await asyncio.sleep(0.01)
        assert (await waiting).id == "x"
        await board.client.aclose()

    asyncio.run(main())


def test_a_walk_of_asyncio_bears_cancels_and_ends_while_it_begins(server, jobs) -> None:
    jobs.settings_set({"events": "posted"})

    async def main() -> None:
        board = AsyncBoard("board", redis.asyncio.Redis(port=server.port, client_name="walk"))
        made, begun, may = board.client.pubsub, asyncio.Event(), asyncio.Event()

        def slow():
            pubsub = made()
            subscribe = pubsub.subscribe

            async def late(*channels):
                begun.set()
                await may.wait()
                await subscribe(*channels)

            pubsub.subscribe = late
            return pubsub

        board.client.pubsub = slow
        for ends in (False, True):
            begun.clear()
            may.clear()
            events = board.events()
            first = asyncio.create_task(anext(events))
            await begun.wait()
            if ends:
                await events.close()
                may.set()
                with pytest.raises(StopAsyncIteration):
                    await first
                continue
            first.cancel()
            await asyncio.wait({first})
            may.set()
            waiting = asyncio.create_task(anext(events))
            while not waiting.done():
                await board.post(1, id="x", replace=True, delay="1h")
                await asyncio.sleep(0.01)
            assert (await waiting).id == "x"
            await events.close()
        await board.client.aclose()

    asyncio.run(main())
    wait_until(lambda: all(one["name"] != "walk" for one in jobs.client.client_list(_type="pubsub")))


def test_completed_jobs_are_kept_for_an_hour(jobs) -> None:
    @jobs.task()
    def nothing() -> None: ...

    id = nothing.post()
    Worker(jobs).run(burst=True)
    assert [jobs.settings_get(name)[name] for name in KEEPING] == [(3_600_000, "board"), (100_000, "default")]
    assert jobs.get(id).state == "complete" and jobs.result(id) is None


def test_a_full_server_is_worked_on(jobs, server, caplog) -> None:
    """It takes no setting, and the ends of its jobs free memory."""

    @jobs.task()
    def nothing() -> None: ...

    id = nothing.post()
    with server.configured(maxmemory=1, maxmemory_policy="noeviction"):
        Worker(jobs).run(burst=True)
        assert jobs.get(id) is None
    assert "how long completed jobs are kept stays as it is until a worker starts again: " in caplog.text


def test_whoever_has_said_how_long_decides(jobs, server) -> None:
    jobs.task("nothing")(lambda: None)
    Worker(jobs, keep=False).run(burst=True)
    assert jobs.info() is None or jobs.settings_get("keep-complete")["keep-complete"].source == "default"
    jobs.settings_set({"retain-complete": "2s"})
    Worker(jobs).run(burst=True)
    assert [jobs.settings_get(name)[name] for name in KEEPING] == [(2000, "board"), (100_000, "default")]
    Worker(jobs, keep=30).run(burst=True)
    assert [jobs.settings_get(name)[name] for name in KEEPING] == [(2000, "board"), (30, "board")]
    Worker(jobs, keep=40).run(burst=True)
    assert jobs.settings_get("keep-complete")["keep-complete"] == (30, "board")
    jobs.settings_reset()
    server.client().config_set("jobboard.keep-complete", 7)
    try:
        Worker(jobs, keep=30).run(burst=True)
        assert jobs.settings_get("keep-complete")["keep-complete"] == (7, "module")
    finally:
        server.client().config_set("jobboard.keep-complete", 100_000)


def test_what_jobs_say_of_their_records_counts_for_thousands_of_them(jobs) -> None:
    @jobs.task(retain="1d")
    def part(number: int) -> int:
        return number

    ids = part.post_many([{"number": n} for n in range(1100)])
    Worker(jobs, prefetch=100).run(burst=True)
    assert sum(jobs.result(id) for id in ids) == sum(range(1100))


def test_shards_share_the_number(server) -> None:
    board = ShardedBoard("board", server.client(decode_responses=False), shards=4)
    board.task("nothing")(lambda: None)
    Worker(board, keep=1000).run(burst=True)
    assert all(one.settings_get("keep-complete")["keep-complete"] == (250, "board") for one in board.boards)


def test_a_worker_that_may_not_set_works_all_the_same(server, jobs) -> None:
    rights = [
        "-@all",
        "+@connection",
        "+@pubsub",
        "+job.claim",
        "+job.consume",
        "+job.mheartbeat",
        "+job.worker",
    ]
    server.client().execute_command("ACL", "SETUSER", "w", "on", ">secret", "~*", "&*", *rights)
    try:
        theirs = Board("board", f"redis://w:secret@127.0.0.1:{server.port}")
        theirs.task("nothing")(lambda: None)
        jobs.post({}, name="nothing")
        worker = Worker(theirs)
        assert worker.run(burst=True) and worker.done == 1
    finally:
        server.client().execute_command("ACL", "DELUSER", "w")


def test_a_subscription_that_is_not_answered_is_given_up(jobs, monkeypatch) -> None:
    class Silent:
        closed = False

        def subscribe(self, *channels: bytes) -> None: ...

        def get_message(self, timeout: float) -> None: ...

        def close(self) -> None:
            self.closed = True

    silent = Silent()
    jobs.settings_set({"events": "posted"})
    monkeypatch.setattr(events, "SILENCE", 0.0)
    monkeypatch.setattr(jobs.client, "pubsub", lambda: silent)
    with pytest.raises(redis.ConnectionError, match="SUBSCRIBE was not answered"):
        jobs.events()
    assert silent.closed

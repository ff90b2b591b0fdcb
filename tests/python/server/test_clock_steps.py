"""Steps of the machine's clock: nothing that time does waits for them, and no wait ends by them.

The servers see a wall clock that is moved by hand (harness/wall.py), and run their own timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from expect import check_consistent
from harness import Server, WallClock, wait_until
from lives import LONG
from waiters import Waiter, Watcher

HOUR = 3600.0
STEPS = {
    "ahead": [HOUR],
    "back": [-HOUR],
    "back and right again": [-HOUR, HOUR],
    "ahead and right again": [HOUR, -HOUR],
    "a little back": [-0.4],
}
DUE = 300
"""Ms after which things are due here."""


@pytest.fixture
def wall() -> Iterator[WallClock]:
    clock = WallClock()
    yield clock
    clock.close()


@pytest.fixture
def stepped(fresh_server: Callable[..., Server], wall: WallClock) -> Server:
    """A server whose wall clock is `wall`."""
    return fresh_server(environment=wall.environment)


@pytest.fixture(params=STEPS)
def steps(request: pytest.FixtureRequest) -> list[float]:
    return STEPS[request.param]


def make(wall: WallClock, step: float, server: Server) -> None:
    """The server's clock makes a step."""
    wall.step(step)
    client = server.client()
    wait_until(lambda: wall.seen_by(client), what="the server sees the step")


def jobboard(server: Server) -> dict:
    return server.info("jobboard")


def settle_far(server: Server) -> None:
    """A board whose next event is far ahead, and within a step: the server's timer is set for that."""
    server.board("far").post(delay=600_000)


def begin(board, name: str) -> None:
    """Something of each kind that is due soon."""
    board.post(id=f"{name}-leased", queue=f"{name}-l", lapses=-1)
    board.claim_one("w1", queues=[f"{name}-l"], lease=DUE)
    board.post(id=f"{name}-retried", queue=name, retries=3, backoff=("FIXED", DUE))
    board.fail("w2", f"{name}-retried", token=board.claim_one("w2", queues=[name])["token"])
    board.post(id=f"{name}-kept", queue=f"{name}-k", retain=DUE)
    board.consume("w3", f"{name}-kept", token=board.claim_one("w3", queues=[f"{name}-k"])["token"])
    board.post(id=f"{name}-delayed", queue=f"{name}-d", delay=DUE)
    board.post(id=f"{name}-expired", queue=f"{name}-x", expire=DUE)
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, f"{name}-every", "x", "EVERY", 200)
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, f"{name}-cron", "x", "CRON", "* * * * * *")


def fired(board, schedule: str) -> int:
    found = board.client.execute_command("JOB.SCHEDULE", "GET", board.key, schedule)
    return found["fired"]


def await_all(board, name: str) -> None:
    """All that was begun happens, and schedules go on."""
    before = {kind: fired(board, f"{name}-{kind}") for kind in ("every", "cron")}
    for what, state in [
        ("leased", "ready"),
        ("retried", "ready"),
        ("kept", None),
        ("delayed", "ready"),
        ("expired", "failed"),
    ]:
        id = f"{name}-{what}"
        wait_until(lambda id=id, state=state: board.state(id) == state, what=f"{id} is {state}")
    for kind, times in before.items():
        wait_until(lambda k=kind, n=times: fired(board, f"{name}-{k}") > n + 1, what=f"{name}-{kind} fires")


@pytest.mark.parametrize("idle", [False, True], ids=["at work", "idle"])
def test_a_step_stops_nothing(stepped, wall, steps, idle):
    settle_far(stepped)
    board = stepped.board()
    names = [] if idle else ["before"]
    for name in names:
        begin(board, name)
    for number, step in enumerate(steps):
        make(wall, step, stepped)
        begin(board, f"after-{number}")
        names.append(f"after-{number}")
    for name in names:
        await_all(board, name)
    # Nothing changes any more.
    for name in names:
        for kind in ("every", "cron"):
            board.client.execute_command("JOB.SCHEDULE", "DEL", board.key, f"{name}-{kind}")
    check_consistent(board)


def test_what_waits_ends_by_no_step_and_after_its_time(stepped, wall, steps):
    board = stepped.board()
    settle_far(stepped)
    board.post(id="j", queue="other")
    long = [Waiter(stepped, "w1", block=LONG, queues=["work"]), Watcher(stepped, "JOBS", 1, "j", ms=LONG)]
    # The steps come while they wait.
    short = [Waiter(stepped, "w2", block=2000, queues=["no"]), Watcher(stepped, "JOBS", 1, "j", ms=2000)]
    for step in steps:
        make(wall, step, stepped)
        later = [
            Waiter(stepped, "w3", block=DUE, queues=["no"], await_block=False),
            Watcher(stepped, "JOBS", 1, "j", ms=DUE, await_block=False),
        ]
        assert [waiter.answer() for waiter in later] == [None, None]
    assert [waiter.answer() for waiter in short] == [None, None]
    assert all(waiter.still_waits() for waiter in long)
    board.cancel("j")
    board.post(id="k", queue="work")
    assert long[0].job() == "k"
    assert long[1].answer()


def test_a_wait_on_a_replica_ends_after_its_time(fresh_server, wall, steps):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary, environment=wall.environment)
    replica.wait_synced(primary)
    for step in steps:
        make(wall, step, replica)
        assert Watcher(replica, "FOR", "present", ms=DUE, await_block=False).answer() is None


def test_tokens_of_a_rate_go_on_coming(stepped, wall, steps):
    board = stepped.board()
    board.set(rate=20, burst=1)
    board.post_many(20)
    for step in steps:
        assert board.claim("w1", block=20_000)
        make(wall, step, stepped)
        for _ in range(2):
            assert board.claim("w1", block=20_000), "the rate's tokens have come"


def test_the_time_of_boards_never_goes_back_and_is_the_machines_again(stepped, wall):
    board = stepped.board()
    board.post(id="a")
    make(wall, -HOUR, stepped)
    board.post(id="b")
    assert board.get("b")["posted"] >= board.get("a")["posted"]
    wait_until(lambda: jobboard(stepped)["jobboard_clock_ahead_ms"] > 0, what="it is ahead")
    # Now by half a second only, which it makes up for by itself.
    wall.step(HOUR - 0.5)
    wait_until(lambda: jobboard(stepped)["jobboard_clock_ahead_ms"] == 0, what="the clocks agree again")
    wall.step(-HOUR)
    wait_until(lambda: jobboard(stepped)["jobboard_clock_ahead_ms"] > HOUR * 900, what="it is ahead")
    wall.step(HOUR)
    wait_until(lambda: jobboard(stepped)["jobboard_clock_ahead_ms"] == 0, what="the clocks agree at once")
    wait_until(
        lambda: "has gone back by" in stepped.log and "has gone ahead by" in stepped.log, what="the log"
    )


def test_a_server_that_starts_again_goes_by_its_machines_clock(stepped, wall):
    stepped.board().post(id="a")
    wall.step(-HOUR)
    wait_until(lambda: jobboard(stepped)["jobboard_clock_ahead_ms"] > 0, what="it is ahead")
    stepped.restart()
    board = stepped.board()
    assert jobboard(stepped)["jobboard_clock_ahead_ms"] == 0
    board.post(id="j", delay=DUE)
    wait_until(lambda: board.state("j") == "ready", what="the delay ends")


def test_a_step_back_while_the_timer_works_stops_nothing(stepped, wall) -> None:
    """The server looks at the clock once, then runs its timers: what they set anew must not count as due
    until the clock is there again."""
    board = stepped.board()
    stepped.client().execute_command("JOB.SCHEDULE", "SET", board.key, "s", "t", "EVERY", 10)
    client = stepped.client(socket_timeout=30)
    for n in range(80):
        wall.flip(600 + n, 1 + n % 20)
        wait_until(lambda: not wall.flipped, what="the looks are over")
        assert client.ping()
    client.execute_command("JOB.SCHEDULE", "DEL", board.key, "s")
    check_consistent(board)

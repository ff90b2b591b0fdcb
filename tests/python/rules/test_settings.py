"""JOB.SETTINGS: values of the module, the board, the queue and the job, the nearest of which counts."""

from __future__ import annotations

import lives
import pytest
from expect import MS, refused_like
from harness import EPOCH, from_pairs
from lives import LONG

T = 2**40
N = 2**31 - 1
DAY = 86_400_000

OF_QUEUES = {
    "lease": (30_000, 1, T),
    "retries": (10, -1, N),
    "lapses": (5, -1, N),
    "lapse-delay": (0, 0, T),
    "backoff-base": (5_000, 0, T),
    "backoff-max": (3_600_000, 0, T),
    "jitter": (10, 0, 100),
    "timeout": (-1, -1, T),
    "expire": (-1, -1, T),
    "grace": (0, 0, T),
    "cancel-grace": (-1, -1, T),
}
OF_QUEUES_AND_BOARDS = {
    "concurrency": (-1, -1, N),
    "ageing": (0, 0, N),
}
OF_EACH_LEVEL = {
    "rate": (-1, -1, N),
    "rate-period": (1_000, 1, N),
    "burst": (1, 1, N),
}
OF_BOARDS = {
    "retain-complete": (0, -1, T),
    "retain-result": (3_600_000, -1, T),
    "retain-failed": (30 * DAY, -1, T),
    "retain-trashed": (30 * DAY, -1, T),
    "retain-cancelled": (DAY, -1, T),
    "session-grace": (0, 0, T),
    "keep-complete": (100_000, 0, None),
    "keep-failed": (100_000, 0, None),
    "keep-trashed": (100_000, 0, None),
    "keep-cancelled": (100_000, 0, None),
    "events": (0, 0, 524_287),
    "events-tracked": (0, 0, 1),
}
TOTALS = {
    "max-jobs": (-1, -1, N),
    "max-bytes": (-1, -1, 2**53),
}
OF_BOARDS_ALONE = {
    "tombstones": (10_000, 0, 1_000_000),
    "tombstone-ttl": (60_000, 0, None),
    "history-first": (5, 0, 1_000),
    "history-last": (15, 0, 1_000),
    "ownerless": (0, 0, 1),
    "stats-days": (30, 0, 3_650),
    "max-queues": (100_000, 1, 10_000_000),
    "max-groups": (1_000_000, 1, 100_000_000),
    "max-schedules": (10_000, 1, 1_000_000),
    "max-keys": (10_000_000, 1, 1_000_000_000),
    "max-steps": (1_000, 0, 100_000),
    "max-step-bytes": (16 << 20, 0, 1 << 30),
    "output-bytes": (65_536, 0, 64 << 20),
    "retain-output": (60_000, 0, 1 << 40),
}
ALL = {**OF_QUEUES, **OF_QUEUES_AND_BOARDS, **OF_EACH_LEVEL, **TOTALS, **OF_BOARDS, **OF_BOARDS_ALONE}
OF_THE_MODULE = {**OF_QUEUES, **OF_BOARDS}
MODULE_ALONE = [
    "recovery-grace",
    "max-payload",
    "max-text",
    "max-batch",
    "max-shared",
    "max-reply",
    "foreign-effects",
]


def test_an_absent_board_has_the_values_of_the_module(clocked_board):
    settings = clocked_board.settings()
    assert {name: value for name, (value, _) in settings.items()} == {
        name: default for name, (default, _, _) in ALL.items()
    }
    assert {source for _, source in settings.values()} <= {"module", "default"}
    assert not clocked_board.client.exists("board")


def test_a_setting_of_the_board_wins_over_that_of_the_module(clocked_board):
    assert clocked_board.set(lease=1234, retries=3) == "OK"
    assert clocked_board.settings("lease", "retries") == {"lease": [1234, "board"], "retries": [3, "board"]}
    lives.ready(clocked_board)
    assert clocked_board.claim_one()["deadline"] == EPOCH + 1234


def test_a_setting_of_the_queue_wins_over_that_of_the_board(clocked_board):
    clocked_board.set(lease=1234)
    clocked_board.set(queue="mail", lease=99)
    assert clocked_board.settings("lease", queue="mail") == {"lease": [99, "queue"]}
    assert clocked_board.settings("lease", queue="other") == {"lease": [1234, "board"]}
    assert clocked_board.settings("lease") == {"lease": [1234, "board"]}
    lives.ready(clocked_board, queue="mail")
    assert clocked_board.claim_one(queues=["mail"])["deadline"] == EPOCH + 99


def test_an_option_of_the_job_wins_over_all(clocked_board):
    clocked_board.set(lease=1234)
    clocked_board.set(queue="mail", lease=99)
    lives.ready(clocked_board, queue="mail", lease=5)
    assert clocked_board.claim_one(queues=["mail"])["deadline"] == EPOCH + 5


def test_a_setting_of_the_module_counts_where_nothing_else_is_said(clocked):
    board = clocked.board()
    with clocked.configured(jobboard__lease=777):
        assert board.settings("lease") == {"lease": [777, "module"]}
        lives.ready(board)
        assert board.claim_one()["deadline"] == EPOCH + 777
    assert board.settings("lease")["lease"][0] == 30_000


def test_a_setting_counts_for_jobs_that_were_posted_before(clocked_board):
    lives.ready(clocked_board)
    clocked_board.set(lease=55)
    assert clocked_board.claim_one()["deadline"] == EPOCH + 55


def test_a_reset_gives_back_the_value_of_the_next_level(clocked_board):
    clocked_board.set(lease=1, retries=2)
    clocked_board.set(queue="mail", lease=3)
    assert clocked_board.reset("lease", queue="mail") == "OK"
    assert clocked_board.settings("lease", queue="mail") == {"lease": [1, "board"]}
    assert clocked_board.reset("lease") == "OK"
    assert clocked_board.settings("lease")["lease"][0] == 30_000
    assert clocked_board.settings("retries") == {"retries": [2, "board"]}


def test_a_reset_without_names_resets_all_of_that_level(clocked_board):
    clocked_board.set(lease=1, retries=2)
    clocked_board.set(queue="mail", lease=3)
    clocked_board.reset()
    assert "board" not in {source for _, source in clocked_board.settings().values()}
    assert clocked_board.settings("lease", queue="mail") == {"lease": [3, "queue"]}
    clocked_board.reset(queue="mail")
    assert clocked_board.settings("lease", queue="mail")["lease"][0] == 30_000


def test_set_creates_the_board_and_reset_does_not(clocked_board):
    clocked_board.reset("lease")
    assert not clocked_board.client.exists("board")
    clocked_board.set(lease=1)
    assert clocked_board.client.exists("board")


@pytest.mark.parametrize("name", ALL)
def test_the_ends_of_a_range_are_accepted_and_no_more(clocked_board, name):
    _, low, high = ALL[name]
    for value in [low] if high is None else [low, high]:
        clocked_board.set(**{name: value})
        assert clocked_board.settings(name) == {name: [value, "board"]}
    told = high if high is not None else r"\d+"
    wrong = [low - 1, "x", "", "1.5", "9" * 30] + ([] if high is None else [high + 1])
    for value in wrong:
        names = "|ERR unknown event '.*': it must be one of .+" if name == "events" else ""
        line = f"ERR {name} must be an integer from {low} to {told}({MS})?{names}"
        with refused_like(line, clocked_board):
            clocked_board.set(**{name: value})


@pytest.mark.parametrize("name", {**OF_QUEUES, **OF_QUEUES_AND_BOARDS, **TOTALS})
def test_a_queue_may_have_a_value_of_its_own(clocked_board, name):
    clocked_board.set(queue="mail", **{name: 7})
    assert clocked_board.settings(name, queue="mail") == {name: [7, "queue"]}


@pytest.mark.parametrize("name", [*OF_BOARDS, *OF_BOARDS_ALONE, *MODULE_ALONE])
def test_what_is_not_of_queues_cannot_be_set_there(clocked_board, name):
    lives.ready(clocked_board)
    with refused_like("ERR .+", clocked_board):
        clocked_board.set(queue="mail", **{name: 7})


@pytest.mark.parametrize("name", ["bogus", "", *MODULE_ALONE, "clock"])
def test_an_unknown_name_is_refused(clocked_board, name):
    lives.ready(clocked_board)
    for words in [("SET", "board", name, 1), ("GET", "board", name), ("RESET", "board", name)]:
        with refused_like(f"ERR unknown setting '{name}': .+", clocked_board):
            clocked_board.client.execute_command("JOB.SETTINGS", *words)


def test_one_wrong_value_refuses_all(clocked_board):
    lives.ready(clocked_board)
    with refused_like("ERR lease must be .+", clocked_board):
        clocked_board.set(retries=1, lease=0)
    assert clocked_board.settings("retries")["retries"][0] == 10


def test_a_name_without_a_value_is_refused(clocked_board):
    lives.ready(clocked_board)
    for words in [("lease",), ("lease", 1, "retries"), ("QUEUE", "mail", "lease"), ("QUEUE", "mail")]:
        with refused_like("ERR .+", clocked_board):
            clocked_board.client.execute_command("JOB.SETTINGS", "SET", "board", *words)


def test_names_and_words_may_be_in_capitals(clocked_board):
    clocked_board.client.execute_command("job.settings", "set", "board", "queue", "mail", "LEASE", 5)
    assert clocked_board.settings("Lease", queue="mail") == {"lease": [5, "queue"]}


def test_settings_stay_when_the_jobs_of_a_queue_have_gone(clocked_board):
    clocked_board.set(queue="mail", lease=5)
    lives.ready(clocked_board, queue="mail")
    clocked_board.delete("j")
    assert clocked_board.settings("lease", queue="mail") == {"lease": [5, "queue"]}


# What each of them does


def test_retries_and_back_off_of_a_board(clocked_board):
    clocked_board.set(retries=1, backoff_base=100, backoff_max=150, jitter=0)
    token = lives.claimed(clocked_board)
    assert clocked_board.fail("w1", "j", token=token) == {"state": "scheduled", "due": EPOCH + 100, "left": 0}


def test_back_off_never_exceeds_the_maximum(clocked_board, clock):
    clocked_board.set(backoff_base=100, backoff_max=150, jitter=0)
    lives.ready(clocked_board)
    lives.claim(clocked_board)
    clocked_board.fail("w1", "j")
    clock.advance(100)
    lives.claim(clocked_board)
    assert clocked_board.fail("w1", "j")["due"] == clock.now() + 150


def test_lapses_of_a_board(clocked_board, clock):
    clocked_board.set(lapses=0)
    lives.claimed(clocked_board, lease=10)
    clock.advance(10)
    assert clocked_board.get("j")["kind"] == "lapsed"


def test_timeout_and_expire_of_a_board(clocked_board, clock):
    clocked_board.set(timeout=50, expire=70)
    lives.ready(clocked_board, "waits")
    lives.claimed(clocked_board, "runs")
    clock.advance(50)
    assert clocked_board.get("runs")["kind"] == "timeout"
    clock.advance(20)
    assert clocked_board.get("waits")["kind"] == "expired"


@pytest.mark.parametrize("life", ["complete", "failed", "trashed", "cancelled"])
def test_retention_of_a_board(clocked_board, clock, life):
    clocked_board.set(**{f"retain-{life}": 100})
    lives.LIVES[life](clocked_board, **({"retain": None} if life == "complete" else {}))
    clock.advance(99)
    assert clocked_board.state("j") == life
    clock.advance(1)
    assert clocked_board.get("j") is None


def test_retention_of_results_of_a_board(clocked_board, clock):
    clocked_board.set(retain_result=100)
    lives.claimed(clocked_board)
    clocked_board.consume("w1", "j", result="r")
    clock.advance(99)
    assert clocked_board.state("j") == "complete"
    clock.advance(1)
    assert clocked_board.get("j") is None


@pytest.mark.parametrize("life", ["failed", "trashed", "cancelled"])
def test_nothing_is_kept_when_retention_is_0(clocked_board, life):
    clocked_board.set(**{f"retain-{life}": 0})
    lives.LIVES[life](clocked_board)
    assert clocked_board.get("j") is None


@pytest.mark.parametrize("life", ["failed", "trashed", "cancelled"])
def test_what_is_kept_for_ever_is_kept(clocked_board, clock, life):
    clocked_board.set(**{f"retain-{life}": -1})
    lives.LIVES[life](clocked_board)
    clock.advance(2**41)
    assert clocked_board.state("j") == life


@pytest.mark.parametrize("life", lives.ENDED)
def test_none_is_kept_when_the_number_is_0(clocked_board, life):
    clocked_board.set(**{f"keep-{life}": 0})
    lives.LIVES[life](clocked_board)
    assert clocked_board.get("j") is None


@pytest.mark.parametrize("life", ["failed", "complete"])
def test_a_lower_number_drops_the_oldest(clocked_board, clock, life):
    for n in range(10):
        lives.LIVES[life](clocked_board, f"j{n}")
        clock.advance(1)
    clocked_board.set(**{f"keep-{life}": 3})
    lives.LIVES[life](clocked_board, "last")
    clock.advance(1)
    assert clocked_board.list_all(state=life, justid=True) == ["j8", "j9", "last"]


# Settings of the module


@pytest.mark.parametrize("name", OF_THE_MODULE)
def test_the_configuration_checks_the_same_range(server, name):
    client = server.client()
    _, low, high = OF_THE_MODULE[name]
    for value in [low - 1, "x"] + ([] if high is None else [high + 1]):
        with refused_like("ERR .+"):
            client.config_set(f"jobboard.{name}", value)
    with server.configured(**{f"jobboard__{name}": low}):
        assert client.config_get(f"jobboard.{name}") == {f"jobboard.{name}": str(low)}


def test_load_arguments_are_settings(fresh_server):
    server = fresh_server("lease", 4321, "retries", 2)
    board = server.board()
    assert board.settings("lease", "retries") == {"lease": [4321, "module"], "retries": [2, "module"]}


def test_lines_of_the_configuration_file_are_settings(fresh_server):
    server = fresh_server(config=["jobboard.lease 4321", "jobboard.max-batch 7"])
    assert server.board().settings("lease")["lease"][0] == 4321
    assert server.client().config_get("jobboard.max-batch") == {"jobboard.max-batch": "7"}


@pytest.mark.parametrize("option", [{"timeout": LONG}, {"expire": LONG}, {"retain": LONG}])
def test_an_option_of_a_job_wins_over_its_board(clocked_board, clock, option):
    clocked_board.set(timeout=10, expire=10, retain_complete=10)
    lives.ready(clocked_board, **option)
    if "expire" in option:
        clock.advance(20)
        assert clocked_board.state("j") == "ready"
        return
    token = lives.claim(clocked_board)
    if "timeout" in option:
        clock.advance(20)
        assert clocked_board.state("j") == "claimed"
        return
    clocked_board.consume("w1", "j", token=token)
    clock.advance(20)
    assert clocked_board.state("j") == "complete"


# Kept


SCOPES = {
    "board": [],
    "queue": ["QUEUE", "q"],
    "group": ["QUEUE", "q", "GROUP", "g"],
    "groups": ["QUEUE", "q", "GROUP", "*"],
    "limit": ["LIMIT", "l"],
}
OF_GROUPS_ALONE = {"weight": (1, 1, None), "ordered": (0, 0, 1)}


def test_every_setting_of_every_level_is_in_a_snapshot_and_on_a_replica(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    replica.wait_synced(primary)
    client = primary.client(decode_responses=False)

    def told(of, key="board"):
        run = of.client().execute_command
        return {level: from_pairs(run("JOB.SETTINGS", "GET", key, *words)) for level, words in SCOPES.items()}

    for level, names in told(primary).items():
        for name in names.keys() - {"limits", "dead-queue"}:
            default, least, _ = {**ALL, **OF_GROUPS_ALONE}[name]
            value = least + 1 if least == default else least
            client.execute_command("JOB.SETTINGS", "SET", "board", *SCOPES[level], name, value)
    for level in ("queue", "group", "groups"):
        client.execute_command("JOB.SETTINGS", "SET", "board", *SCOPES[level], "limits", 1, "l")
    client.execute_command("JOB.SETTINGS", "SET", "board", *SCOPES["queue"], "dead-queue", "dead")
    client.execute_command("RESTORE", "copy", 0, client.dump("board"))
    want = told(primary)
    assert all(source == level for level, names in want.items() for _, source in names.values())
    replica.wait_synced(primary)
    assert told(primary, "copy") == told(replica) == told(replica, "copy") == want

"""JOB.AWAIT, JOB.SIGNAL and AWAIT of a post: waiting for the outside world."""

from __future__ import annotations

import lives
import pytest
import redis
from expect import refused, refused_like
from harness import EPOCH, from_pairs, wait_until
from lives import LONG


def waiting(board, id="j", **options) -> int:
    """A job that w1 held and that waits for its approval; the token of that claim."""
    token = lives.claimed(board, id)
    assert board.wait_for("w1", id, ["approved"], token=token, **options) == {"state": "blocked"}
    return token


def gated(board, id="j", names=("approved",), **options) -> None:
    assert board.post(id=id, **{"await": list(names), **options}) == id


def test_a_job_is_given_up_until_its_signal_arrives(clocked_board, clock):
    board = clocked_board
    waiting(board, within=LONG)
    assert board.get("j")["awaits"] == {
        "signals": ["approved"],
        "missing": ["approved"],
        "since": EPOCH,
        "until": EPOCH + LONG,
        "ontimeout": "run",
    }
    assert board.claim("w2") == []
    clock.advance(5)
    assert board.signal("approved", "j", value="yes", sender="eve") == ["woken"]
    assert "awaits" not in board.get("j")
    token = lives.claim(board, worker="w2", lease=1000)
    answer = board.wait_for("w2", "j", ["approved"], token=token)
    assert answer == {
        "state": "claimed",
        "timeout": 0,
        "signals": {"approved": {"value": "yes", "at": EPOCH + 5, "sender": "eve"}},
        "deadline": EPOCH + 1005,
        "cancel": 0,
    }
    assert board.get("j")["attempt"] == 2
    assert board.get("j", fields=["signals"])["signals"] == answer["signals"]


def test_the_words_of_a_signal(board):
    gated(board, "gated")
    gated(board, "both", names=["approved", "paid"])
    lives.ready(board, "early")
    lives.complete(board, "complete")
    lives.gone(board, "gone")
    ids = ["gated", "both", "early", "complete", "gone", "nobody"]
    assert board.signal("approved", *ids) == ["woken", "kept", "kept", "ended", "ended", None]
    assert board.signal("approved", *ids) == ["already", "already", "already", "ended", "ended", None]
    assert [board.state(id) for id in ids[:3]] == ["ready", "blocked", "ready"]
    assert board.signal("paid", "both", "both") == ["woken", "already"]


def test_without_a_board_all_are_unknown(board):
    assert board.signal("approved", "a", "b") == [None, None]
    assert not board.client.exists("board")


def test_an_early_signal_keeps_the_claim(board):
    token = lives.claimed(board)
    assert board.signal("approved", "j", value="yes") == ["kept"]
    assert board.signal("approved", "j", value="no") == ["already"]
    answer = board.wait_for("w1", "j", ["approved"], token=token)
    assert (answer["state"], answer["signals"]["approved"]["value"]) == ("claimed", "yes")
    assert "sender" not in answer["signals"]["approved"]


def test_any_is_the_first_that_arrived(board):
    token = lives.claimed(board)
    names = ["a", "b", "c"]
    assert board.wait_for("w1", "j", names, any=True, token=token) == {"state": "blocked"}
    assert board.signal("c", "j") == ["woken"]
    assert board.signal("a", "j") == ["kept"]
    lives.claim(board)
    assert list(board.wait_for("w1", "j", names, any=True)["signals"]) == ["c"]
    assert board.wait_for("w1", "j", names) == {"state": "blocked"}
    assert board.signal("b", "j") == ["woken"]
    lives.claim(board)
    assert list(board.wait_for("w1", "j", names)["signals"]) == ["c", "a", "b"]


TIMEOUTS = {"run": ("ready", None), "fail": ("failed", "signal"), "cancel": ("cancelled", None)}


@pytest.mark.parametrize("then", TIMEOUTS)
@pytest.mark.parametrize("how", ["a run", "a post"])
def test_the_time_of_a_wait_is_over(clocked_board, clock, then, how):
    board = clocked_board
    board.set(retain_cancelled=LONG)
    if how == "a run":
        waiting(board, within=1000, ontimeout=then)
    else:
        gated(board, within=1000, ontimeout=then)
    clock.advance(999)
    assert board.state("j") == "blocked"
    clock.advance(1)
    job = board.get("j")
    assert (job["state"], job.get("kind")) == TIMEOUTS[then]
    assert "await-timeout" in [entry["event"] for entry in board.history("j")]
    assert job["left"] == 10


def test_a_timeout_is_remembered_under_the_name_of_the_wait(clocked_board, clock):
    board = clocked_board
    waiting(board, within=1000)
    clock.advance(1000)
    lives.claim(board)
    board.signal("approved", "j")
    late = board.wait_for("w1", "j", ["approved"])
    assert (late["state"], late["timeout"], late["signals"]) == ("claimed", 1, {})
    other = board.wait_for("w1", "j", ["approved"], step="again")
    assert (other["timeout"], list(other["signals"])) == (0, ["approved"])
    board.update("j", unstep=["approved"])
    assert board.wait_for("w1", "j", ["approved"])["timeout"] == 0


def test_a_gate_of_a_post_opens_before_the_work(board):
    gated(board, names=["approved", "paid"], delay=LONG)
    assert (board.state("j"), board.signal("paid", "j")) == ("blocked", ["kept"])
    assert board.signal("approved", "j") == ["woken"]
    assert board.state("j") == "scheduled"


WAYS = {
    "MPOST": lambda board: board.mpost(["x"], ids=["j"], **{"await": ["approved"]}),
    "FLOW": lambda board: board.call("FLOW", 1, "NODE", "n", "x", "ID", "j", "AWAIT", 1, "approved"),
    "NEXT": lambda board: (
        lives.claimed(board),
        board.consume("w1", "j", next="q2", **{"await": ["approved"]}),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_commands_have_the_same_gate(board, way):
    WAYS[way](board)
    assert (board.state("j"), board.signal("approved", "j")) == ("blocked", ["woken"])


def test_jobs_of_a_schedule_wait(clocked_board, clock):
    board = clocked_board
    words = ["EVERY", 1000, "AWAIT", 2, "a", "b", "ANY", "WITHIN", 500, "ONTIMEOUT", "fail"]
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "x", *words)
    shown = from_pairs(board.client.execute_command("JOB.SCHEDULE", "GET", "board", "s"))
    assert [shown[name] for name in ("await", "any", "within", "ontimeout")] == [["a", "b"], 1, 500, "fail"]
    clock.advance(1000)
    assert board.state("@s@1") == "blocked"
    clock.advance(500)
    assert board.get("@s@1")["kind"] == "signal"
    # What SET does not name stays.
    board.client.execute_command("JOB.SCHEDULE", "SET", "board", "s", "y")
    clock.advance(500)
    assert board.signal("b", "@s@2") == ["woken"]


def test_a_cancelled_job_does_not_run_unapproved(board):
    gated(board)
    board.cancel("j")
    board.requeue("j")
    assert (board.state("j"), board.claim("w1")) == ("blocked", [])
    board.signal("approved", "j")
    token = lives.claim(board)
    board.fail("w1", "j", token=token, noretry=True)
    board.requeue("j")
    assert board.state("j") == "ready"


def test_a_replacing_post_needs_the_approval_again(board):
    gated(board)
    board.signal("approved", "j")
    board.post("other", id="j", replace=True)
    assert (board.state("j"), "signals" in board.get("j", fields=["id", "signals"])) == ("blocked", False)
    board.post("third", id="j", replace=True, **{"await": ["paid"]})
    assert board.signal("approved", "j") == ["kept"]
    assert board.signal("paid", "j") == ["woken"]


@pytest.mark.parametrize("conflict", ["replace", "debounce"])
def test_a_post_over_a_unique_key_needs_the_approval_again(board, conflict):
    gated(board, names=["approved", "paid"], unique="k")
    board.signal("approved", "j")
    board.post("other", unique="k", onconflict=conflict)
    assert board.get("j")["awaits"]["missing"] == ["approved", "paid"]


def test_an_operator_lets_it_go_without(board):
    gated(board)
    remove = ("JOB.DEPEND", "REMOVE", "board", "j", "SIGNALS")
    assert board.client.execute_command(*remove) == "ready"
    waiting(board, "other")
    assert board.depend("CLEAR", "other") == "ready"
    lives.claim(board, "other")
    assert board.wait_for("w1", "other", ["approved"])["timeout"] == 1
    with refused("CLAIMED w1", board):
        board.depend("CLEAR", "other")


def test_a_job_that_was_claimed_may_wait_for_others_too(board):
    waiting(board)
    lives.ready(board, "other")
    assert board.depend("ADD", "j", ["other"]) == "blocked"
    assert board.signal("approved", "j") == ["kept"]
    lives.claim(board, "other")
    board.consume("w1", "other")
    wait_until(lambda: board.state("j") == "ready", what="the end of the other")


def test_the_inbox_of_whoever_approves(board):
    gated(board, "a")
    gated(board, "b", names=["approved", "paid"])
    waiting(board, "c")
    lives.ready(board, "d")
    board.signal("approved", "b")
    assert [job["id"] for job in board.list_all(awaits="approved")] == ["a", "c"]
    assert [job["id"] for job in board.list_all(awaits="paid")] == ["b"]
    assert board.call("COUNT", "AWAITS", "approved") == 2
    assert board.call("SIGNAL", "approved", "WHERE", "AWAITS", "approved", "DRYRUN") == [2, "0", []]
    assert board.call("SIGNAL", "approved", "WHERE", "AWAITS", "approved", "VALUE", "all") == [2, "0", []]
    assert board.list_all(awaits="approved") == []
    assert board.call("SIGNAL", "approved", "WHERE", "STATE", "ready") == [1, "0", []]


def test_a_claim_follows_only_when_the_job_was_given_up(board):
    lives.claimed(board)
    lives.ready(board, "other")
    answer = board.call("AWAIT", "w1", "j", "SIGNALS", 1, "s", "CLAIM", "FIELDS", 1, "id")
    assert from_pairs(answer[0]) == {"state": "blocked"}
    assert [from_pairs(job) for job in answer[1]] == [{"id": "other"}]
    lives.ready(board, "third")
    board.signal("s", "other")
    answer = board.call("AWAIT", "w1", "other", "SIGNALS", 1, "s", "CLAIM", "BLOCK", 1000)
    assert (from_pairs(answer[0])["state"], answer[1]) == ("claimed", None)
    assert board.state("third") == "ready"


def test_it_is_explained(clocked_board):
    board = clocked_board
    gated(board, names=["a", "b"], within=LONG, ontimeout="cancel")
    board.signal("a", "j")
    [reason] = map(from_pairs, from_pairs(board.call("EXPLAIN", "j"))["reasons"])
    assert reason["reason"] == "signals"
    assert (reason["since"], reason["until"], reason["ontimeout"]) == (EPOCH, EPOCH + LONG, "cancel")
    assert "waits for the signal b" in reason["text"]
    assert f"At {EPOCH + LONG} it is cancelled." in reason["text"]
    gated(board, "k", within=LONG)
    [reason] = map(from_pairs, from_pairs(board.call("EXPLAIN", "k"))["reasons"])
    silence = f"At {EPOCH + LONG} its handler runs, and learns that nobody answered."
    assert silence in reason["text"], "silence must not read as approval"


def test_it_is_counted(clocked_board, clock):
    board = clocked_board
    gated(board, within=1000)
    gated(board, "k")
    clock.advance(400)
    board.signal("approved", "k")
    clock.advance(600)
    stats = from_pairs(board.call("STATS"))
    assert (stats["awaited"], stats["signalled"], stats["await-timeouts"]) == (2, 1, 1)
    waits = from_pairs(stats["await"])
    assert (waits["count"], waits["sum"], waits["max"]) == (2, 1400, 1000)
    text = board.client.execute_command("JOB.METRICS", "board")
    assert 'jobboard_await_seconds_count{board="board",queue="default"} 2' in text


def test_its_history_names_signal_and_sender(board):
    waiting(board)
    board.signal("approved", "j", sender="eve")
    entries = [(entry["event"], entry.get("worker"), entry.get("signal")) for entry in board.history("j")]
    assert entries[2:] == [("awaiting", "w1", "approved"), ("signalled", "eve", "approved")]


def test_a_waiting_job_takes_no_slot_and_the_next_worker_gets_it(board):
    board.set(queue="default", concurrency=1)
    lives.ready(board, "other")
    waiting(board)
    assert [job["id"] for job in board.claim("w2")] == ["other"]


def test_names_and_values_are_bytes(server):
    board = server.board(decode_responses=False)
    lives.claimed(board)
    name = b"\x00\xff\r\n"
    assert board.signal(name, "j", value=b"\xff\x00", sender=b"\xfe") == ["kept"]
    answer = board.wait_for("w1", "j", [name])
    [(got, one)] = answer["signals"].items()
    assert (one["value"], one["sender"]) == (b"\xff\x00", b"\xfe")


BAD = {
    "a wait for nothing": ("AWAIT w1 j SIGNALS 0", "SIGNALS must be an integer from 1 to 64"),
    "no SIGNALS": ("AWAIT w1 j STEP n TOKEN 1", "SIGNALS or CHILDREN must name what to wait for"),
    "ANY of nothing": ("AWAIT w1 j ANY TOKEN 1", "ANY needs SIGNALS"),
    "65 signals": ("AWAIT w1 j SIGNALS 65 s", "SIGNALS must be an integer from 1 to 64"),
    "too few names": ("AWAIT w1 j SIGNALS 2 s", "SIGNALS names 2 but fewer follow"),
    "a name twice": ("AWAIT w1 j SIGNALS 2 s s", "SIGNALS names 's' twice"),
    "SIGNALS twice": ("AWAIT w1 j SIGNALS 1 s SIGNALS 1 t", "SIGNALS is given twice"),
    "a time of nothing": (
        "AWAIT w1 j SIGNALS 1 s WITHIN 0",
        "WITHIN must be an integer from 1 to 1099511627776",
    ),
    "an unknown end": (
        "AWAIT w1 j SIGNALS 1 s WITHIN 5 ONTIMEOUT hold",
        "ONTIMEOUT must be run, fail or cancel",
    ),
    "an end without time": ("AWAIT w1 j SIGNALS 1 s ONTIMEOUT fail", "ONTIMEOUT needs WITHIN"),
    "an unknown option": (
        "AWAIT w1 j SIGNALS 1 s WITHN 5",
        "syntax error near 'WITHN': did you mean WITHIN?",
    ),
    "a post for nothing": ("POST x AWAIT 0", "AWAIT must be an integer from 1 to 64"),
    "ANY alone": ("POST x ANY", "ANY needs AWAIT"),
    "WITHIN alone": ("POST x WITHIN 5", "WITHIN needs AWAIT"),
    "ONTIMEOUT alone": ("POST x ONTIMEOUT run", "ONTIMEOUT needs AWAIT"),
    "a post with a name twice": ("POST x AWAIT 2 s s", "AWAIT names 's' twice"),
    "a gate without NEXT": (
        "CONSUME w1 j AWAIT 1 s",
        "NAME, DELAY, PRIORITY, AFTER, AWAIT, NEXT-COST and NEXT-COSTS need NEXT",
    ),
    "a node": ("FLOW 1 NODE n x AWAIT 0", "AWAIT must be an integer from 1 to 64 in node 'n'"),
    "a signal to nobody": ("SIGNAL s 0", "n must be an integer from 1 to 10000"),
    "a signal by no filter": ("SIGNAL s WHERE DRYRUN", "WHERE needs a filter"),
    "VALUE twice": ("SIGNAL s 1 j VALUE a VALUE b", "VALUE is given twice"),
    "VALUE of nothing": ("SIGNAL s 1 j VALUE", "VALUE needs a value"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_changes_nothing(board, case):
    lives.claimed(board)
    words, error = BAD[case]
    verb, *rest = words.split()
    with refused_like(f"ERR {error}.*|ERR wrong number of arguments.*", board):
        board.call(verb, *rest)


@pytest.mark.parametrize("length", [255, 256])
def test_a_name_is_of_255_bytes_at_most(board, length):
    lives.claimed(board)
    name = "s" * length
    if length == 255:
        assert board.signal(name, "j", sender=name) == ["kept"]
        assert board.wait_for("w1", "j", [name])["state"] == "claimed"
        return
    for words, argument in [
        (("SIGNAL", name, 1, "j"), "name"),
        (("SIGNAL", "s", 1, "j", "SENDER", name), "SENDER"),
        (("AWAIT", "w1", "j", "SIGNALS", 1, name), "SIGNALS"),
        (("AWAIT", "w1", "j", "SIGNALS", 1, "s", "STEP", name), "STEP"),
        (("POST", "x", "AWAIT", 1, name), "AWAIT"),
    ]:
        with refused(f"ERR {argument} must be 1 to 255 bytes long", board):
            board.call(*words)


def test_a_value_is_at_most_a_payload(server):
    board = server.board()
    lives.claimed(board)
    with server.configured(jobboard__max_payload=10):
        with refused("ERR VALUE is longer than 10 bytes", board):
            board.signal("s", "j", value="x" * 11)
        assert board.signal("s", "j", value="x" * 10) == ["kept"]


def test_steps_and_signals_share_their_bounds(board):
    lives.claimed(board)
    lives.claimed(board, "k")
    board.set(max_steps=2)
    board.step("w1", "j", "a")
    board.signal("a", "j")
    with refused("LIMIT max-steps j", board):
        board.signal("b", "k", "j")
    assert "signals" not in board.get("k", fields=["id", "signals"])
    with refused("LIMIT max-steps", board):
        board.step("w1", "j", "b")
    with refused("LIMIT max-steps", board):
        board.wait_for("w1", "j", ["b"])
    assert board.call("SIGNAL", "b", "WHERE", "STATE", "claimed") == [1, "0", ["j"]]
    board.set(max_steps=1000, max_step_bytes=8)
    with refused("LIMIT max-step-bytes k", board):
        board.signal("c", "k", value="x" * 8)


def test_many_jobs_get_a_large_value_only_within_max_shared(server):
    board = server.board()
    board.mpost(["x"] * 100, ids=[f"j{n}" for n in range(100)])
    with server.configured(jobboard__max_shared=2000):
        with refused_like("ERR VALUE for each of 100 jobs .n. is .+", board):
            board.signal("s", *[f"j{n}" for n in range(100)], value="x" * 100)


def test_fields_come_only_when_they_are_asked_for(board):
    lives.claimed(board)
    board.signal("s", "j", value="v")
    assert "signals" not in board.get("j")
    assert list(board.get("j", fields=["id", "signals"])["signals"]) == ["s"]
    with pytest.raises(redis.ResponseError):
        board.get("j", fields=["signal"])


def test_a_waiting_client_hears_of_a_signal(board):
    lives.claimed(board)
    version = board.get("j")["version"]
    board.signal("s", "j")
    assert board.call("WAIT", 1000, "JOBS", 1, "j", "CHANGED", version, "FIELDS", 1, "version")
    wait_until(lambda: board.get("j")["version"] > version, what="another version")

"""The M-forms: one command for many jobs, with an answer for each of them."""

from __future__ import annotations

import lives
import pytest
from expect import drain, refused, refused_like
from harness import EPOCH
from harness import from_pairs as pairs
from lives import LONG

# JOB.MPOST


def test_many_jobs_are_posted_in_order_with_shared_options(clocked_board):
    made = clocked_board.mpost(["a", "b", "c"], queue="mail", priority=2, name="n", meta={"k": "v"})
    assert len(set(made)) == 3
    for id, payload in zip(made, "abc"):
        job = clocked_board.get(id)
        assert (job["payload"], job["queue"], job["priority"], job["name"]) == (payload, "mail", 2, "n")
        assert job["meta"] == {"k": "v"}
    assert drain(clocked_board) == made


def test_made_ids_of_one_command_differ(clocked_board):
    made = clocked_board.mpost(["x"] * 1000)
    assert len(set(made)) == 1000


def test_ids_may_be_given(clocked_board):
    assert clocked_board.mpost(["1", "2"], ids=["a", "b"]) == ["a", "b"]
    assert [job["payload"] for job in clocked_board.mget("ab")] == ["1", "2"]


def test_one_taken_id_refuses_all(clocked_board):
    lives.ready(clocked_board, "b")
    with refused("EXISTS b", clocked_board):
        clocked_board.mpost(["1", "2", "3"], ids=["a", "b", "c"])


def test_nx_skips_taken_ids(clocked_board):
    lives.ready(clocked_board, "b", name="old")
    assert clocked_board.mpost(["1", "2", "3"], ids=["a", "b", "c"], nx=True) == ["a", None, "c"]
    assert clocked_board.get("b")["payload"] == "payload"


def test_xx_skips_unknown_ids(clocked_board):
    lives.ready(clocked_board, "b")
    assert clocked_board.mpost(["1", "2", "3"], ids=["a", "b", "c"], xx=True) == [None, "b", None]
    assert clocked_board.get("b")["payload"] == "2"
    assert clocked_board.count() == 1


def test_xx_on_a_board_that_does_not_exist_creates_none(clocked_board):
    assert clocked_board.mpost(["1"], ids=["a"], xx=True) == [None]
    assert not clocked_board.client.exists("board")


def test_replace_posts_or_replaces(clocked_board):
    lives.claimed(clocked_board, "b")
    assert clocked_board.mpost(["1", "2"], ids=["a", "b"], replace=True) == ["a", "b"]
    assert [(job["payload"], job["state"]) for job in clocked_board.mget("ab")] == [
        ("1", "ready"),
        ("2", "ready"),
    ]


def test_a_dropped_id_is_taken(clocked_board):
    lives.gone(clocked_board, "b")
    with refused("EXISTS b", clocked_board):
        clocked_board.mpost(["1", "2"], ids=["a", "b"])
    assert clocked_board.mpost(["1", "2"], ids=["a", "b"], nx=True) == ["a", None]


@pytest.mark.parametrize("option", [{}, {"nx": True}, {"replace": True}], ids=str)
def test_an_id_given_twice_is_refused(clocked_board, option):
    lives.ready(clocked_board, "other")
    with refused("ERR IDS names 'x' twice", clocked_board):
        clocked_board.mpost(["1", "2", "3"], ids=["x", "y", "x"], **option)


@pytest.mark.parametrize("option", ["nx", "xx", "replace"])
def test_nx_xx_and_replace_need_ids(clocked_board, option):
    with refused_like(f"ERR .*{option.upper()}.*", clocked_board):
        clocked_board.mpost(["1"], **{option: True})


@pytest.mark.parametrize("ids", [["a"], ["a", "b", "c"], ["a", ""], ["a", "@b"], ["a", "x" * 256]], ids=str)
def test_ids_must_fit_the_payloads(clocked_board, ids):
    with refused_like("ERR .+", clocked_board):
        clocked_board.mpost(["1", "2"], ids=ids)


def test_one_payload_too_long_refuses_all(clocked):
    board = clocked.board()
    with clocked.configured(jobboard__max_payload=10), refused_like("ERR .*10 bytes", board):
        board.mpost(["x", "x" * 11])


def test_a_full_batch_is_posted(clocked_board):
    made = clocked_board.mpost([str(n) for n in range(10_000)])
    assert clocked_board.count() == 10_000
    assert [job["payload"] for job in clocked_board.mget(made[9_990:])] == [
        str(n) for n in range(9_990, 10_000)
    ]


# What the M-forms of a worker's verbs share

VERBS = ["mheartbeat", "mconsume", "mfail", "mabandon", "mtrash"]


def answer(reply) -> object:
    """`[code, detail]` as one text; anything else as it stands."""
    return " ".join(reply) if isinstance(reply, list) else reply


def is_done(reply) -> bool:
    """Whether this is the reply of one of the verbs to a holder, or to one that is late."""
    if isinstance(reply, dict) and "deadline" in reply:
        return reply["deadline"] > EPOCH and reply["cancel"] == 0
    return reply in ("complete", "OK") or (reply["state"], reply["left"]) == ("scheduled", 9)


@pytest.mark.parametrize("verb", VERBS)
def test_each_job_has_its_own_answer(clocked_board, verb):
    good = lives.claimed(clocked_board, "good")
    stale = lives.claimed(clocked_board, "stale")
    lives.claimed_by_another(clocked_board, "other")
    lives.ready(clocked_board, "ready")
    lives.failed(clocked_board, "failed")
    lives.cancelled(clocked_board, "cancelled")
    ids = ["other", "ready", "stale", "unknown", "failed", "cancelled", "good"]
    tokens = [1, 1, stale - 1, 1, 1, 1, good]
    replies = [answer(one) for one in getattr(clocked_board, verb)("w1", ids, tokens=tokens)]
    assert replies[:-1] == [
        "NOTOWNER w2",
        "NOTCLAIMED ready",
        f"STALE token {stale - 1} is not the current one",
        "NOJOB no such job",
        "ENDED failed",
        "CANCELLED the job was cancelled",
    ]
    assert is_done(replies[-1])


@pytest.mark.parametrize("verb", VERBS)
def test_tokens_may_be_left_out(clocked_board, verb):
    lives.claimed(clocked_board, "a")
    lives.claimed(clocked_board, "b")
    replies = getattr(clocked_board, verb)("w1", ["a", "b"])
    assert all(map(is_done, replies)) and len(replies) == 2


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("tokens", [[1], [1, 2, 3], ["x", "1"]], ids=str)
def test_tokens_must_fit_the_ids(clocked_board, verb, tokens):
    lives.claimed(clocked_board, "a")
    lives.claimed(clocked_board, "b")
    with refused_like("ERR .*TOKENS.*", clocked_board):
        getattr(clocked_board, verb)("w1", ["a", "b"], tokens=tokens)


@pytest.mark.parametrize("verb", VERBS)
def test_all_takes_no_tokens(clocked_board, verb):
    lives.claimed(clocked_board)
    with refused_like("ERR .*TOKENS.*", clocked_board):
        getattr(clocked_board, verb)("w1", "ALL", tokens=[1])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("word", ["ALL", "all"])
def test_a_worker_that_holds_nothing_has_no_answers(clocked_board, verb, word):
    assert getattr(clocked_board, verb)("w1", word) == []
    assert not clocked_board.client.exists("board")
    lives.claimed_by_another(clocked_board)
    before = clocked_board.digest()
    assert getattr(clocked_board, verb)("w1", word) == []
    assert clocked_board.digest() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_board_that_does_not_exist_knows_no_job(clocked_board, verb):
    assert getattr(clocked_board, verb)("w1", ["a"]) == [["NOJOB", "no such job"]]
    assert not clocked_board.client.exists("board")


@pytest.mark.parametrize("verb", VERBS)
def test_a_late_worker_is_accepted(clocked_board, verb):
    token = lives.lapsed(clocked_board)
    [reply] = getattr(clocked_board, verb)("w1", ["j"], tokens=[token])
    assert is_done(reply)


# JOB.MHEARTBEAT


def test_many_leases_begin_anew(clocked_board, clock):
    for id in "abc":
        lives.claimed(clocked_board, id, lease=1000)
    clock.advance(900)
    assert [reply["deadline"] for reply in clocked_board.mheartbeat("w1", "abc")] == [EPOCH + 1900] * 3
    replies = clocked_board.mheartbeat("w1", ["a"], lease=50)
    assert replies == [{"deadline": EPOCH + 950, "cancel": 0}]


def test_all_leases_begin_anew_and_are_told(clocked_board, clock):
    tokens = {id: lives.claimed(clocked_board, id, lease=1000) for id in "abc"}
    lives.claimed_by_another(clocked_board, "other")
    clocked_board.cancel("b")
    clock.advance(900)
    replies = clocked_board.mheartbeat("w1", "ALL", lease=1000)
    assert sorted(replies, key=lambda reply: reply["id"]) == [
        {"id": id, "token": tokens[id], "deadline": EPOCH + 1900, "cancel": int(id == "b")} for id in "abc"
    ]


def test_a_heartbeat_over_all_revives_nothing(clocked_board):
    """What has lapsed is not held; the worker learns it by its absence."""
    lives.lapsed(clocked_board)
    assert clocked_board.mheartbeat("w1", "ALL") == []
    assert clocked_board.state("j") == "ready"


# JOB.MCONSUME


def test_many_jobs_are_consumed(clocked_board):
    posted = clocked_board.post_many(10)
    held = clocked_board.claim("w1", count=10)
    tokens = [job["token"] for job in held]
    assert clocked_board.mconsume("w1", posted, tokens=tokens) == ["complete"] * 10
    assert clocked_board.info()["jobs"] == 0


def test_a_shared_result_is_kept(clocked_board):
    for id in "ab":
        lives.claimed(clocked_board, id)
    clocked_board.mconsume("w1", "ab", result="42", retain=LONG)
    assert [(job["state"], job["result"]) for job in clocked_board.mget("ab")] == [("complete", "42")] * 2


def test_each_job_has_its_own_result(clocked_board):
    """What is refused takes none of the others'."""
    for id in "abc":
        lives.claimed(clocked_board, id)
    lives.ready(clocked_board, "r")
    reply = clocked_board.mconsume("w1", ["a", "r", "b", "c"], results=["1", "2", "3", ""], retain=LONG)
    assert reply == ["complete", ["NOTCLAIMED", "ready"], "complete", "complete"]
    assert [job.get("result") for job in clocked_board.mget(["a", "r", "b", "c"])] == ["1", None, "3", ""]


@pytest.mark.parametrize(
    "ids, keywords, line",
    [
        ("ab", {"results": ["1"]}, "ERR RESULTS must name 2 results, one for each id"),
        ("ab", {"results": ["1", "2", "3"]}, "ERR RESULTS must name 2 results, one for each id"),
        ("ALL", {"results": ["1", "2"]}, "ERR ALL excludes RESULTS"),
        ("ab", {"results": ["1", "2"], "result": "3"}, "ERR RESULTS excludes RESULT and NEXT"),
        ("ab", {"results": ["1", "2"], "next": "q"}, "ERR RESULTS excludes RESULT and NEXT"),
    ],
    ids=["fewer", "more", "ALL", "RESULT", "NEXT"],
)
def test_results_must_fit_the_ids(clocked_board, ids, keywords, line):
    lives.claimed(clocked_board, "a")
    lives.claimed(clocked_board, "b")
    with refused(line, clocked_board):
        clocked_board.mconsume("w1", ids, **keywords)


def test_a_job_to_be_cancelled_is_not_consumed_unless_forced(clocked_board):
    lives.claimed(clocked_board, "a")
    lives.cancel_requested(clocked_board, "b")
    assert clocked_board.mconsume("w1", "ab") == ["complete", ["CANCELLED", "cancel was requested"]]
    assert clocked_board.mconsume("w1", "b", force=True) == ["complete"]


def test_all_that_a_worker_holds_is_consumed(clocked_board):
    for id in "ab":
        lives.claimed(clocked_board, id)
    lives.claimed_by_another(clocked_board, "other")
    lives.cancel_requested(clocked_board, "c")
    replies = {id: answer(reply) for id, reply in clocked_board.mconsume("w1", "ALL")}
    assert replies == {"a": "complete", "b": "complete", "c": "CANCELLED cancel was requested"}
    assert clocked_board.workers()["w2"]["claimed"] == 1
    assert clocked_board.state("c") == "claimed"


def test_a_job_named_twice_is_consumed_once(clocked_board):
    """The second is the resend of the first: answered the same with its token, refused without."""
    token = lives.claimed(clocked_board)
    assert clocked_board.mconsume("w1", ["j", "j"], tokens=[token, token]) == ["complete", "complete"]
    lives.claimed(clocked_board, "k")
    assert clocked_board.mconsume("w1", ["k", "k"]) == ["complete", ["NOJOB", "no such job"]]


# JOB.MABANDON


def test_a_worker_that_goes_home_gives_everything_back(clocked_board):
    for id in "abc":
        lives.claimed(clocked_board, id)
    lives.claimed_by_another(clocked_board, "other")
    replies = clocked_board.mabandon("w1", "ALL", reason="going home")
    assert sorted(replies) == [["a", "OK"], ["b", "OK"], ["c", "OK"]]
    assert clocked_board.get("a")["reason"] == "going home"
    assert clocked_board.info()["ready"] == 3
    assert "w1" not in clocked_board.workers() or clocked_board.workers()["w1"]["claimed"] == 0
    assert clocked_board.state("other") == "claimed"


def test_many_jobs_are_given_back_for_later(clocked_board):
    for id in "ab":
        lives.claimed(clocked_board, id)
    assert clocked_board.mabandon("w1", "ab", delay=70) == ["OK", "OK"]
    assert [job["due"] for job in clocked_board.mget("ab")] == [EPOCH + 70] * 2


def test_what_was_to_be_cancelled_is_cancelled_when_given_back(clocked_board):
    lives.cancel_requested(clocked_board)
    assert clocked_board.mabandon("w1", "ALL") == [["j", "OK"]]
    assert clocked_board.state("j") == "cancelled"


# JOB.MFAIL and JOB.MTRASH


def test_many_jobs_fail_as_one_does(clocked_board):
    for id in "ab":
        lives.claimed(clocked_board, id, retries=0 if id == "b" else 3)
    replies = clocked_board.mfail("w1", "ab", "Down", "no printer", retry=70)
    assert replies == [{"state": "scheduled", "due": EPOCH + 70, "left": 2}, {"state": "failed", "left": 0}]
    assert [job["kind"] for job in clocked_board.mget("ab")] == ["Down"] * 2
    lives.claimed(clocked_board, "c")
    assert clocked_board.mfail("w1", "ALL", noretry=True) == [["c", {"state": "failed", "left": 9}]]


def test_many_jobs_are_set_aside_with_a_reason(clocked_board):
    for id in "ab":
        lives.claimed(clocked_board, id)
    assert clocked_board.mtrash("w1", ["a"], reason="no JSON") == ["OK"]
    assert clocked_board.mtrash("w1", "ALL") == [["b", "OK"]]
    assert [job["state"] for job in clocked_board.mget("ab")] == ["trashed"] * 2
    assert clocked_board.get("a")["reason"] == "no JSON"


@pytest.mark.parametrize("verb", ["mfail", "mtrash"])
def test_the_next_jobs_are_claimed_with_the_end_of_many(clocked_board, verb):
    lives.claimed(clocked_board, "a")
    lives.ready(clocked_board, "next")
    [replies, jobs] = getattr(clocked_board, verb)("w1", ["a"], claim=True)
    assert len(replies) == 1 and [job["id"] for job in jobs] == ["next"]


@pytest.mark.parametrize("verb", ["mfail", "mtrash"])
def test_what_was_to_be_cancelled_is_cancelled_with_many(clocked_board, verb):
    lives.cancel_requested(clocked_board)
    getattr(clocked_board, verb)("w1", "ALL")
    assert clocked_board.state("j") == "cancelled"


# JOB.MGET


def test_many_records_are_read_in_the_order_asked_for(clocked_board):
    for id in "abc":
        lives.ready(clocked_board, id)
    found = clocked_board.mget(["c", "unknown", "a", "c"], fields=["id"])
    assert found == [{"id": "c"}, None, {"id": "a"}, {"id": "c"}]


def test_a_board_that_does_not_exist_has_no_records(clocked_board):
    assert clocked_board.mget(["a", "b"]) == [None, None]


def test_a_batch_map_is_flat_in_resp2(clocked):
    """The answers of MHEARTBEAT can be told from `[code, detail]` by their first word."""
    board = clocked.board(protocol=2)
    lives.claimed(board)
    beat, unknown = board.call("MHEARTBEAT", "w1", 2, "j", "unknown")
    assert pairs(beat) == {"deadline": EPOCH + LONG, "cancel": 0}
    assert unknown == ["NOJOB", "no such job"]

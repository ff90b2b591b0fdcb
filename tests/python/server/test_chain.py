"""CLAIM at the end of a verb that ends work: one command ends a job and takes the next, or waits for it."""

from __future__ import annotations

from typing import Any

import lives
import pytest
from expect import MS, check_consistent, error_text, ids, refused
from harness import Board, Server, from_pairs, options, record, wait_until
from lives import LONG
from waiters import Parked, Waiter, Watcher, blocked_clients

VERBS: dict[str, tuple[tuple, Any]] = {
    "consume": (("CONSUME", "w1", "j"), "complete"),
    "consume next": (("CONSUME", "w1", "j", "NEXT", "later"), "ready"),
    "mconsume": (("MCONSUME", "w1", 1, "j"), ["complete"]),
    "mconsume all": (("MCONSUME", "w1", "ALL"), [["j", "complete"]]),
    "fail": (("FAIL", "w1", "j", "kind", "message", "NORETRY"), {"state": "failed", "left": 9}),
    "abandon": (("ABANDON", "w1", "j", "DELAY", LONG), "OK"),
    "trash": (("TRASH", "w1", "j"), "OK"),
}
"""Each verb, said by w1 of job j, and what it answers of that."""

AFTERWARDS = {"consume next": "ready", "fail": "failed", "abandon": "scheduled", "trash": "trashed"}
"""The state of j then; None where the job has gone."""


def parts(verb: str, reply: Any) -> tuple[Any, Any]:
    """What a reply says of the end, and its claims: None, or records."""
    ending, claims = reply
    if verb == "fail":
        ending = from_pairs(ending)
    return ending, None if claims is None else [record(one) for one in claims]


def chain(board: Board, verb: str, **claim_options: Any) -> tuple[Any, Any]:
    """Ends j by a verb of `VERBS`, with a claim."""
    words, _ = VERBS[verb]
    return parts(verb, board.call(*words, "CLAIM", *options(**claim_options)))


def then(board: Board, id: str, worker: str = "w1", **claim_options: Any) -> tuple[Any, list]:
    """Consumes a job and claims: what is said of the end, and the ids of the claims."""
    ending, claims = board.call("CONSUME", worker, id, "CLAIM", *options(**claim_options))
    return ending, ids([record(one) for one in claims or []])


class Chained(Parked):
    """A client that has sent a verb of `VERBS` with a claim, and waits."""

    def __init__(self, server: Server, verb: str = "consume", protocol: int = 3, **claim: Any) -> None:
        self.verb = verb
        (name, *words), self.ending = VERBS[verb]
        words = [f"JOB.{name}", "board", *words, "CLAIM", *options(**{"block": 0, **claim})]
        super().__init__(server, tuple(words), protocol=protocol, await_block=not claim.get("block"))

    def parts(self, within: float = 30.0) -> tuple[Any, Any]:
        return parts(self.verb, self.answer(within))

    def job(self) -> str:
        ending, claims = self.parts()
        assert ending == self.ending and len(claims) == 1, (ending, claims)
        return claims[0]["id"]


# At once


@pytest.mark.parametrize("verb", VERBS)
def test_the_reply_is_a_pair_of_the_end_and_the_claims(server, protocol, verb):
    board = server.board(protocol=protocol)
    token = lives.claimed(board)
    board.post("next", id="n", name="name", queue="q")
    ending, [job] = chain(board, verb, queues=["q"])
    assert ending == VERBS[verb][1]
    assert job["token"] > token and job["deadline"]
    assert {k: v for k, v in job.items() if k not in ("token", "deadline")} == {
        "id": "n",
        "attempt": 1,
        "name": "name",
        "queue": "q",
        "payload": "next",
    }
    assert board.get("n")["worker"] == "w1"
    assert (board.get("j") or {}).get("state") == AFTERWARDS.get(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_without_work_the_claims_are_null(server, protocol, verb):
    board = server.board(protocol=protocol)
    lives.claimed(board)
    assert chain(board, verb) == (VERBS[verb][1], None)
    assert (board.get("j") or {}).get("state") == AFTERWARDS.get(verb)


def test_the_claim_takes_the_options_of_a_claim(board):
    lives.claimed(board)
    board.mpost("xyz", ids=["a", "b", "c"], queue="q")
    board.post(id="p", queue="r", priority=1)
    reply = board.call(
        "CONSUME", "w1", "j", "RESULT", "r", "claim", "queues", 2, "q", "r", "order", "listed",
        "count", 3, "lease", 5000, "fields", 1, "id",
    )  # fmt: skip
    assert reply == ["complete", [{"id": "a"}, {"id": "b"}, {"id": "c"}]]
    assert board.get("j")["result"] == "r"
    assert board.get("a")["deadline"] - board.get("a")["claimed"] == 5000
    assert then(board, "a", queues=[]) == ("complete", ["p"])


def test_a_worker_needs_one_command_for_each_job(board):
    posted = board.post_many(50)
    [job] = board.claim("w1")
    worked = []
    while job:
        worked.append(job["id"])
        ending, claims = board.call("CONSUME", "w1", job["id"], "TOKEN", job["token"], "CLAIM")
        assert ending == "complete"
        job = record(claims[0]) if claims else None
    assert worked == posted
    assert board.count() == 0


def test_a_batch_ends_and_the_next_is_taken(board):
    board.mpost("abcdef", ids=list("abcdef"))
    first = board.claim("w1", count=3)
    tokens = [job["token"] for job in first]
    ending, claims = board.call(
        "MCONSUME", "w1", 4, *"abc", "zebra", "TOKENS", 4, tokens[0], 7, tokens[2], 7, "CLAIM", "COUNT", 3
    )
    stale = ["STALE", "token 7 is not the current one"]
    assert ending == ["complete", stale, "complete", ["NOJOB", "no such job"]]
    assert ids([record(one) for one in claims]) == ["d", "e", "f"]
    assert board.state("b") == "claimed"


def test_a_batch_with_a_refusal_does_not_wait(board):
    """The worker is to hear of it at once."""
    lives.claimed(board)
    assert board.call("MCONSUME", "w1", 2, "j", "x", "CLAIM", "BLOCK", 0) == [
        ["complete", ["NOJOB", "no such job"]],
        None,
    ]
    board.post(id="n")
    ending, claims = board.call("MCONSUME", "w1", 1, "x", "CLAIM", "BLOCK", 0)
    assert ending == [["NOJOB", "no such job"]] and ids([record(one) for one in claims]) == ["n"]


# Refusals


def not_owned(board: Board) -> str:
    lives.claimed(board, worker="w2")
    return "NOTOWNER w2"


def stale(board: Board) -> str:
    lives.claimed(board)
    return "STALE token 7 is not the current one"


def cancel_requested(board: Board) -> str:
    lives.cancel_requested(board)
    return "CANCELLED cancel was requested"


def unknown(board: Board) -> str:
    return "NOJOB no such job"


def not_claimed(board: Board) -> str:
    lives.ready(board, queue="other")
    return "NOTCLAIMED ready"


@pytest.mark.parametrize("verb", [verb for verb in VERBS if not verb.startswith("mconsume")])
@pytest.mark.parametrize("why", [not_owned, stale, cancel_requested, unknown, not_claimed])
def test_an_end_that_is_refused_claims_nothing(board, verb, why):
    board.post(id="n")
    error = why(board)
    words, _ = VERBS[verb]
    token = ["TOKEN", 7] if why is stale else []
    if why is cancel_requested and verb != "consume":
        return
    with refused(error, board):
        board.call(*words, *token, "CLAIM", "BLOCK", 0)
    assert board.state("n") == "ready"


WRONG = {
    "COUNT 0": "ERR COUNT must be an integer from 1 to 10000",
    "LEASE": "ERR LEASE needs a value",
    "BLOCK -1": f"ERR BLOCK must be an integer from 0 to 1099511627776{MS}",
    "ORDER any": "ERR ORDER must be best, listed or rotate",
    "FIELDS 1 stat": "ERR unknown field 'stat': did you mean 'state'?",
    "SESSION SESSION": "ERR SESSION is given twice",
    "ID n": "ERR CLAIM at the end of a verb excludes ID",
    "TOKEN 7": "ERR syntax error near 'TOKEN'",
    "CLAIM": "ERR syntax error near 'CLAIM'",
}
"""What may not stand after CLAIM."""


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("words", WRONG)
def test_a_claim_that_cannot_be_understood_ends_nothing(board, verb, words):
    lives.claimed(board)
    board.post(id="n")
    with refused(WRONG[words], board):
        board.call(*VERBS[verb][0], "CLAIM", *words.split())
    assert board.state("j") == "claimed"


def test_nobody_claims_for_anybody(board):
    board.set(ownerless="yes")
    lives.claimed(board)
    for words in [("CONSUME", "*", "j"), ("FAIL", "*", "j", "k", "m"), ("MCONSUME", "*", 1, "j")]:
        with refused("ERR worker must not be '*' with CLAIM", board):
            board.call(*words, "CLAIM")


def test_a_worker_that_goes_home_claims_nothing(board):
    with refused("ERR syntax error near 'CLAIM'", board):
        board.call("MABANDON", "w1", "ALL", "CLAIM")


# Waiting


@pytest.mark.parametrize("verb", VERBS)
def test_it_waits_and_is_woken_by_a_post(server, protocol, verb):
    board = server.board()
    lives.claimed(board)
    client = Chained(server, verb, protocol=protocol)
    assert (board.get("j") or {}).get("state") == AFTERWARDS.get(verb), "the end does not wait"
    board.post("next", id="n", priority=5)
    ending, [job] = client.parts()
    assert ending == client.ending
    assert (job["id"], job["payload"]) == ("n", "next")
    client.send("ECHO", "after")
    assert client.connection.read_response() == "after", "two replies to one command"
    check_consistent(board)


@pytest.mark.parametrize("verb", VERBS)
def test_the_timeout_tells_of_the_end(server, protocol, verb):
    lives.claimed(server.board())
    client = Chained(server, verb, protocol=protocol, block=50)
    assert client.parts() == (client.ending, None)


def test_unblocking_by_hand_is_a_timeout_or_an_error(server):
    board = server.board()
    lives.claimed(board)
    client = Chained(server)
    board.client.execute_command("CLIENT", "UNBLOCK", client.id)
    assert client.parts() == ("complete", None)
    board.delete("j")
    lives.claimed(board, retain=LONG)
    client = Chained(server)
    board.client.execute_command("CLIENT", "UNBLOCK", client.id, "ERROR")
    with pytest.raises(Exception) as raised:
        client.parts()
    assert error_text(raised.value).startswith("UNBLOCKED")
    assert board.state("j") == "complete"


def test_a_killed_client_does_not_undo_the_end_and_takes_no_job(server):
    board = server.board()
    lives.claimed(board, retain=LONG)
    client = Chained(server)
    board.client.execute_command("CLIENT", "KILL", "ID", client.id)
    wait_until(lambda: blocked_clients(server) == 0)
    board.post(id="n")
    assert (board.state("j"), board.state("n")) == ("complete", "ready")


def test_a_killed_client_gives_back_what_it_was_chosen_for(server):
    """The post and the kill are in one turn of the event loop."""
    board = server.board()
    for n in range(10):
        lives.claimed(board, retain=LONG)
        client = Chained(server, queues=[f"q{n}"], lease=20)
        pipe = server.client().pipeline(transaction=False)
        pipe.execute_command("JOB.POST", "board", "x", "QUEUE", f"q{n}", "LAPSES", -1)
        pipe.execute_command("CLIENT", "KILL", "ID", client.id)
        pipe.execute()
        assert board.state("j") == "complete"
        board.delete("j")
    wait_until(lambda: board.info()["ready"] == 10)


def test_who_waits_for_the_job_hears_of_its_end_while_its_worker_waits(server):
    board = server.board()
    lives.claimed(board, retain=LONG)
    watcher = Watcher(server, "JOBS", 1, "j")
    client = Chained(server)
    assert watcher.reply()[0]["state"] == "complete"
    assert client.still_waits()


OUTLASTED = {
    "reload": [("DEBUG", "RELOAD")],
    "del": [("DEL", "board")],
    "flush": [("FLUSHALL",)],
    "quiet and back": [
        ("JOB.WORKER", "REGISTER", "board", "w1"),
        ("JOB.WORKER", "QUIET", "board", "w1"),
        ("JOB.POST", "board", "x", "ID", "first"),
        ("JOB.DELETE", "board", 1, "first"),
        ("JOB.WORKER", "RESUME", "board", "w1"),
    ],
}


@pytest.mark.parametrize("how", OUTLASTED)
def test_the_end_is_told_whatever_happens_to_the_board_meanwhile(fresh_server, how):
    server = fresh_server()
    board = server.board()
    lives.claimed(board)
    client = Chained(server)
    for words in OUTLASTED[how]:
        board.client.execute_command(*words)
    assert client.still_waits()
    board.post(id="n")
    assert client.job() == "n"


def test_a_job_taken_away_in_the_same_turn_lets_it_wait_on(server):
    board = server.board()
    lives.claimed(board)
    client = Chained(server)
    pipe = server.client().pipeline(transaction=False)
    pipe.execute_command("JOB.POST", "board", "x", "ID", "n")
    pipe.execute_command("JOB.DELETE", "board", 1, "n")
    pipe.execute()
    assert client.still_waits()
    board.post(id="m")
    assert client.job() == "m"


# MULTI, Lua


def test_inside_a_transaction_it_answers_at_once(board):
    lives.claimed(board, "a")
    lives.claimed(board, "b")
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.CONSUME", "board", "w1", "a", "CLAIM", "BLOCK", 0)
    pipe.execute_command("JOB.POST", "board", "x", "ID", "n")
    pipe.execute_command("JOB.FAIL", "board", "w1", "b", "k", "m", "NORETRY", "CLAIM", "BLOCK", 0)
    first, _, (ending, claims) = pipe.execute()
    assert first == ["complete", None]
    assert ending["state"] == "failed" and ids([record(one) for one in claims]) == ["n"]


def test_inside_a_script_it_answers_at_once(board):
    lives.claimed(board)
    script = "return redis.call('JOB.CONSUME', KEYS[1], 'w1', 'j', 'CLAIM', 'BLOCK', 0)"
    assert board.client.eval(script, 1, "board") == ["complete", None]
    lives.claimed(board, "k")
    board.post(id="n")
    script = script.replace("'j'", "'k'")
    assert board.client.eval(script, 1, "board")[1][0][:2] == ["id", "n"]


def test_a_session_in_a_script_is_refused_and_ends_nothing(board):
    lives.claimed(board)
    script = "return redis.pcall('JOB.CONSUME', KEYS[1], 'w1', 'j', 'CLAIM', 'SESSION')"
    with pytest.raises(Exception) as raised:
        board.client.eval(script, 1, "board")
    assert "SESSION needs a connection of its own" in str(raised.value)
    assert board.state("j") == "claimed"


# Who comes first


def test_earlier_waiters_get_the_slot_that_the_end_frees(server):
    board = server.board()
    board.set(queue="narrow", concurrency=1)
    board.mpost("abc", ids=["a", "b", "c"], queue="narrow")
    board.claim("w1", queues=["narrow"])
    waiter = Waiter(server, "w2", queues=["narrow"])
    assert then(board, "a", queues=["narrow"]) == ("complete", [])
    assert waiter.job() == "b"
    assert then(board, "b", "w2", queues=["narrow"]) == ("complete", ["c"])


def test_earlier_waiters_get_the_dependants_that_the_end_makes_ready(server):
    board = server.board()
    lives.claimed(board)
    board.mpost("ab", ids=["a", "b"], after=["j"])
    waiter = Waiter(server, "w2")
    assert then(board, "j") == ("complete", ["b"])
    assert waiter.job() == "a"


@pytest.mark.parametrize("verb", ["fail", "abandon"])
def test_earlier_waiters_get_the_job_that_comes_back(server, verb):
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    how = ["k", "m", "RETRY", 0] if verb == "fail" else []
    ending, claims = board.call(verb, "w1", "j", *how, "CLAIM")
    assert (from_pairs(ending)["state"] if verb == "fail" else ending) in ("ready", "OK")
    assert claims is None
    assert waiter.job() == "j"


def test_earlier_waiters_get_what_was_due(server):
    """The job is due before the command comes, and the timer had no turn yet."""
    board = server.board()
    lives.claimed(board)
    waiter = Waiter(server, "w2")
    board.post(id="due", delay=10)
    pipe = server.client().pipeline(transaction=False)
    pipe.execute_command("DEBUG", "SLEEP", 0.03)
    pipe.execute_command("JOB.CONSUME", "board", "w1", "j", "CLAIM")
    assert pipe.execute()[1] == ["complete", None]
    assert waiter.job() == "due"


def test_it_stands_in_line_as_of_its_own_arrival(server):
    board = server.board()
    lives.claimed(board)
    before = Waiter(server, "w2")
    client = Chained(server)
    after = Waiter(server, "w3")
    board.mpost("abc", ids=["a", "b", "c"])
    assert (before.job(), client.job(), after.job()) == ("a", "b", "c")


def test_inside_a_transaction_it_comes_before_who_waits(server):
    """As every claim does there: others are served when the transaction is over."""
    board = server.board()
    lives.claimed(board)
    board.mpost("ab", ids=["a", "b"], after=["j"])
    waiter = Waiter(server, "w2")
    pipe = board.client.pipeline()
    pipe.execute_command("JOB.CONSUME", "board", "w1", "j", "CLAIM")
    [[ending, claims]] = pipe.execute()
    assert ending == "complete" and ids([record(one) for one in claims]) == ["a"]
    assert waiter.job() == "b"


# The same job again


def test_a_failed_job_is_not_taken_again_before_its_time(board):
    lives.claimed(board)
    assert board.call("FAIL", "w1", "j", "k", "m", "RETRY", LONG, "CLAIM")[1] is None
    lives.claimed(board, "x")
    board.post(id="n")
    ending, [job] = board.call("FAIL", "w1", "x", "k", "m", "RETRY", LONG, "CLAIM")
    assert (ending["state"], record(job)["id"]) == ("scheduled", "n")


def test_a_failed_job_is_taken_again_when_it_is_due(server):
    board = server.board()
    lives.claimed(board, lapses=-1)
    ending, [job] = board.call("FAIL", "w1", "j", "k", "m", "RETRY", 0, "CLAIM", "FIELDS", 2, "id", "attempt")
    assert (ending["state"], job) == ("ready", {"id": "j", "attempt": 2})
    again = ("JOB.FAIL", "board", "w1", "j", "k", "m", "RETRY", 40, "CLAIM", "BLOCK", 0)
    client = Parked(server, (*again, "FIELDS", 1, "attempt"), await_block=False)
    ending, [job] = client.answer()
    assert (ending["state"], ending["left"], job) == ("scheduled", 8, {"attempt": 3})


def test_an_abandoned_job_comes_to_its_worker_again_when_nobody_else_wants_it(board):
    token = lives.claimed(board)
    ending, [job] = board.call("ABANDON", "w1", "j", "CLAIM")
    assert (ending, job["id"], job["attempt"]) == ("OK", "j", 2)
    assert job["token"] > token


# Lost replies


def test_a_repetition_is_answered_as_before_and_seen_hands_the_next_back(board):
    token = lives.claimed(board)
    board.mpost("ab", ids=["a", "b"])
    words = ("CONSUME", "w1", "j", "TOKEN", token, "CLAIM", "SEEN", token)
    first = board.call(*words)
    assert first[0] == "complete" and first[1][0]["id"] == "a"
    again = board.call(*words)
    assert again[0] == "complete"
    assert [(one["id"], one["token"]) for one in again[1]] == [("a", first[1][0]["token"])]
    assert board.state("b") == "ready"


def test_a_repetition_without_seen_takes_another(board):
    token = lives.claimed(board)
    board.mpost("ab", ids=["a", "b"])
    assert then(board, "j") == ("complete", ["a"])
    ending, claims = board.call("CONSUME", "w1", "j", "TOKEN", token, "CLAIM")
    assert ending == "complete" and claims[0]["id"] == "b"


def test_a_repetition_of_a_failure_waits_for_the_next(server):
    board = server.board()
    token = lives.retrying(board)
    words = ("JOB.FAIL", "board", "w1", "j", "k", "m", "TOKEN", token, "CLAIM", "BLOCK", 0)
    client = Parked(server, words)
    board.post(id="n")
    ending, [job] = client.answer()
    assert (ending["state"], ending["left"], job["id"]) == ("scheduled", 9, "n")


# Sessions, quiet workers, limits


@pytest.mark.parametrize("waits", [False, True])
def test_a_session_claim_ends_with_the_connection(server, waits):
    board = server.board()
    lives.claimed(board, retain=LONG)
    if not waits:
        board.post(id="n")
    words = ("JOB.CONSUME", "board", "w1", "j", "CLAIM", "SESSION", "LEASE", LONG, "BLOCK", 0)
    client = Parked(server, words, await_block=waits)
    if waits:
        board.post(id="n")
    assert client.answer()[1][0]["id"] == "n"
    assert board.get("n")["session"] == 1
    client.close()
    wait_until(lambda: board.state("n") == "ready")
    assert board.state("j") == "complete"


def test_a_quiet_worker_ends_its_work_and_gets_nothing(board):
    lives.claimed(board)
    board.post(id="n")
    board.client.execute_command("JOB.WORKER", "REGISTER", "board", "w1")
    board.client.execute_command("JOB.WORKER", "QUIET", "board", "w1")
    assert then(board, "j") == ("complete", [])


def test_the_next_token_of_a_rate_wakes_it(server):
    board = server.board()
    board.set(rate=20, rate_period=1000, burst=1)
    board.mpost("ab", ids=["a", "j"])
    board.claim("w1")
    words = ("JOB.CONSUME", "board", "w1", "a", "CLAIM", "BLOCK", 0)
    client = Parked(server, words, await_block=False)
    ending, [job] = client.answer()
    assert (ending, job["id"]) == ("complete", "j")


def test_it_works_on_a_full_server(fresh_server):
    server = fresh_server()
    board = server.board()
    lives.claimed(board)
    board.post(id="n")
    with server.configured(maxmemory=1):
        with pytest.raises(Exception, match="OOM|command not allowed"):
            board.post()
        assert then(board, "j") == ("complete", ["n"])


# Replicas and disks


def applied(server: Server) -> int:
    """How many batches a replica has got."""
    return server.info("commandstats").get("cmdstat_job.apply", {}).get("calls", 0)


def test_end_and_claim_travel_as_one_batch(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.claimed(board)
    board.post(id="n")
    replica.wait_synced(primary)
    before = applied(replica)
    assert then(board, "j") == ("complete", ["n"])
    replica.wait_synced(primary)
    assert applied(replica) == before + 1
    assert replica.board().digest() == board.digest()
    assert "cmdstat_multi" not in replica.info("commandstats")


def test_the_end_travels_at_once_while_the_worker_waits(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    lives.claimed(board, retain=LONG)
    replica.wait_synced(primary)
    client = Chained(primary)
    wait_until(lambda: replica.board().state("j") == "complete")
    assert client.still_waits()
    board.post(id="n")
    assert client.job() == "n"
    replica.wait_synced(primary)
    assert replica.board().digest() == board.digest()


def test_a_demotion_ends_the_wait_and_the_end_stays(fresh_server):
    primary, server = fresh_server(), fresh_server()
    lives.claimed(primary.board(), retain=LONG)
    token = primary.board().get("j")["token"]
    server.client().replicaof("127.0.0.1", primary.port)
    server.wait_synced(primary)
    client = Chained(primary)
    wait_until(lambda: server.board().state("j") == "complete")
    server.client().replicaof("NO", "ONE")
    primary.client().replicaof("127.0.0.1", server.port)
    with pytest.raises(Exception) as raised:
        client.parts()
    assert error_text(raised.value).startswith("UNBLOCKED")
    server.board().post(id="n")
    reply = server.board().call("CONSUME", "w1", "j", "TOKEN", token, "CLAIM", "SEEN", token)
    assert reply[0] == "complete" and reply[1][0]["id"] == "n"


def test_the_end_is_on_disk_while_the_worker_waits(fresh_server):
    server = fresh_server(appendonly=True, config=["appendfsync always"])
    board = server.board()
    lives.claimed(board, retain=LONG)
    Chained(server)
    digest = board.digest()
    server.restart(kill=True)
    assert server.board().state("j") == "complete"
    assert server.board().digest() == digest


def test_replicas_and_reloads_agree_after_much_of_it(fresh_server):
    primary = fresh_server()
    replica = fresh_server(replicaof=primary)
    board = primary.board()
    board.set(queue="q", concurrency=4)
    board.post_many(80, retain=LONG)
    jobs = board.claim("w1", count=2, lease=LONG)
    waiters = [Waiter(primary, f"x{n}", queues=["q"], lease=LONG) for n in range(3)]
    board.post_many(60, queue="q")
    assert all(waiter.job() for waiter in waiters)
    for turn in range(50):
        job = jobs.pop(0)
        verb = ["CONSUME", "FAIL", "ABANDON", "TRASH"][turn % 4]
        words = {"FAIL": ["k", "m", "RETRY", LONG], "ABANDON": ["DELAY", LONG]}.get(verb, [])
        words += ["TOKEN", job["token"], "CLAIM", "LEASE", LONG, "QUEUES", 2, "q", "default"]
        _, claims = board.call(verb, "w1", job["id"], *words)
        jobs += [record(one) for one in claims]
    held = [job["id"] for job in jobs]
    claim = ["CLAIM", "LEASE", LONG, "COUNT", 5, "QUEUES", 0]
    ending, claims = board.call("MCONSUME", "w1", len(held), *held, *claim)
    assert ending == ["complete"] * 2 and claims
    check_consistent(board)
    replica.wait_synced(primary)
    digest = board.digest()
    assert replica.board().digest() == digest
    board.client.execute_command("DEBUG", "RELOAD")
    assert board.digest() == digest


def test_nobody_is_left_waiting_when_all_workers_chain(server):
    """One job at a time, and three workers always wait: each end wakes exactly one of them."""
    board = server.board()
    board.set(queue="one", concurrency=1)
    board.post_many(40, queue="one")
    workers = [f"w{n}" for n in range(4)]
    [job] = board.claim("w0", queues=["one"])
    clients = {name: Waiter(server, name, queues=["one"]) for name in workers[1:]}
    done, holder = [], "w0"
    while len(done) < 40:
        done.append(job["id"])
        words = ("JOB.CONSUME", "board", holder, job["id"], "CLAIM", "QUEUES", 1, "one", "BLOCK", 0)
        if len(done) == 40:
            assert board.client.execute_command(*words[:4]) == "complete"
            break
        clients[holder] = Parked(server, words)
        holder = wait_until(
            lambda last=holder: next((n for n in clients if n != last and clients[n].answered()), None),
            what="another gets the next",
        )
        reply = clients[holder].answer()
        job = record(reply[1][0] if reply[0] == "complete" else reply[0])
    assert len(set(done)) == 40
    assert board.count() == 0

"""JOB.POST: what a job is given, and what happens when its id is taken."""

from __future__ import annotations

import uuid

import lives
import pytest
from expect import drain, error_text, refused, refused_like
from harness import EPOCH
from lives import LONG

STATES = ["scheduled", "ready", "claimed", "retrying", "complete", "failed", "cancelled", "trashed"]


# What a job is given


def test_a_job_posted_with_nothing_but_a_payload_has_the_defaults(clocked_board):
    id = clocked_board.post("hello")
    job = clocked_board.get(id)
    assert job["id"] == id
    assert job["payload"] == "hello"
    assert (job["state"], job["queue"], job["priority"]) == ("ready", "default", 0)
    assert (job["attempt"], job["left"], job["posted"]) == (0, 10, EPOCH)
    for field in ("worker", "token", "deadline", "kind", "message", "stage", "progress", "result", "ended"):
        assert field not in job


def test_a_made_id_is_a_uuid_of_version_7_of_the_time_of_the_post(clocked_board):
    made = uuid.UUID(clocked_board.post())
    assert made.version == 7
    assert made.int >> 80 == EPOCH


def test_made_ids_are_unique_and_rise(clocked_board, clock):
    made = []
    for _ in range(50):
        made.append(clocked_board.post())
        clock.advance(1)
    assert made == sorted(set(made))


def test_a_job_is_found_by_its_made_id_as_text(clocked_board):
    id = clocked_board.post("hello")
    with refused(f"EXISTS {id}", clocked_board):
        clocked_board.post("again", id=id)
    assert clocked_board.post("again", id=id, nx=True) is None
    assert clocked_board.get(id.upper()) is None or id.upper() == id


def test_a_client_may_choose_what_looks_like_a_made_id(clocked_board):
    id = "018bcfe5-6800-7000-8000-000000000001"
    assert clocked_board.post("hello", id=id) == id
    assert clocked_board.get(id)["payload"] == "hello"
    assert clocked_board.get(id.upper()) is None
    assert clocked_board.post("other", id=id.upper()) == id.upper()
    assert clocked_board.count() == 2


def test_a_job_keeps_what_it_was_posted_with(clocked_board):
    clocked_board.post(
        "hello", id="j", name="greet", queue="mail", priority=-7, retries=3, meta={"to": "ann", "cc": ""}
    )
    job = clocked_board.get("j")
    assert (job["name"], job["queue"], job["priority"], job["left"]) == ("greet", "mail", -7, 3)
    assert job["meta"] == {"to": "ann", "cc": ""}


def test_a_job_without_meta_has_no_such_field(clocked_board):
    clocked_board.post(id="j")
    assert "meta" not in clocked_board.get("j")
    assert not clocked_board.get("j").get("name")


def test_a_delayed_job_is_scheduled_until_its_time(clocked_board, clock):
    clocked_board.post(id="j", delay=500)
    job = clocked_board.get("j")
    assert (job["state"], job["due"]) == ("scheduled", EPOCH + 500)
    clock.advance(499)
    assert clocked_board.claim() == []
    clock.advance(1)
    assert clocked_board.claim_one()["id"] == "j"


def test_a_job_may_be_posted_for_a_point_in_time(clocked_board, clock):
    clocked_board.post(id="j", at=EPOCH + 2000)
    assert clocked_board.get("j")["due"] == EPOCH + 2000
    clock.set(EPOCH + 2000)
    assert clocked_board.state("j") == "ready"


@pytest.mark.parametrize("when", [{"at": 0}, {"at": EPOCH - 1}, {"at": EPOCH}, {"delay": 0}])
def test_a_job_for_the_past_is_ready_now(clocked_board, when):
    clocked_board.post(id="j", **when)
    assert clocked_board.state("j") == "ready"


def test_a_job_for_the_past_gains_no_place_by_it(clocked_board):
    clocked_board.post(id="first")
    clocked_board.post(id="second", at=0)
    assert drain(clocked_board) == ["first", "second"]


def test_delay_and_at_exclude_each_other(clocked_board):
    with refused_like("ERR .+", clocked_board):
        clocked_board.post(delay=1, at=EPOCH)


def test_the_lease_of_a_job_is_that_of_its_claims(clocked_board):
    clocked_board.post(lease=7000)
    assert clocked_board.claim_one()["deadline"] == EPOCH + 7000


@pytest.mark.parametrize("option", ["retries", "lapses", "timeout", "expire", "retain"])
def test_minus_one_means_without_end(clocked_board, option):
    clocked_board.post(id="j", **{option: -1})
    assert clocked_board.state("j") == "ready"


def test_retries_without_end_are_told_as_minus_one(clocked_board):
    clocked_board.post(id="j", retries=-1)
    assert clocked_board.get("j")["left"] == -1


@pytest.mark.parametrize("words", ["FIXED 0", "FIXED 5", "fixed 5", "EXPONENTIAL 1 2", "exponential 0 0"])
def test_back_off_is_fixed_or_exponential(clocked_board, words):
    assert clocked_board.call("POST", "payload", "BACKOFF", *words.split())


@pytest.mark.parametrize(
    "words",
    [
        "FIXED",
        "FIXED x",
        "FIXED -1",
        f"FIXED {2**40 + 1}",
        "EXPONENTIAL 1",
        "EXPONENTIAL x 1",
        "LINEAR 1",
        "5",
    ],
)
def test_a_strange_back_off_is_refused(clocked_board, words):
    with refused_like("ERR .+", clocked_board):
        clocked_board.call("POST", "payload", "BACKOFF", *words.split())


# Limits


@pytest.mark.parametrize("id", ["x", "x" * 255, "a b", "ünïcödé", "-1", "0"])
def test_an_id_is_any_1_to_255_bytes(clocked_board, id):
    assert clocked_board.post("hello", id=id) == id
    assert clocked_board.get(id)["payload"] == "hello"


@pytest.mark.parametrize("id", ["", "x" * 256, "@", "@nightly@1"])
def test_an_id_that_is_empty_too_long_or_the_servers_own_is_refused(clocked_board, id):
    with refused_like("ERR .+", clocked_board):
        clocked_board.post(id=id)


@pytest.mark.parametrize("option", ["name", "queue"])
def test_a_name_and_a_queue_have_1_to_255_bytes(clocked_board, option):
    clocked_board.post(id="j", **{option: "x" * 255})
    assert clocked_board.get("j")[option] == "x" * 255
    for wrong in ["", "x" * 256]:
        with refused_like(f"ERR {option.upper()} .+", clocked_board):
            clocked_board.post(**{option: wrong})


def test_a_payload_may_be_empty_and_binary(clocked):
    board = clocked.board(decode_responses=False)
    everything = bytes(range(256))
    assert board.get(board.post(b""))["payload"] == b""
    assert board.get(board.post(everything))["payload"] == everything


def test_a_payload_longer_than_the_limit_is_refused(clocked):
    board = clocked.board()
    with clocked.configured(jobboard__max_payload=100):
        board.post("x" * 100)
        with refused_like("ERR .*payload.* is longer than 100 bytes", board):
            board.post("x" * 101)


def test_a_payload_of_the_default_limit_is_kept(clocked):
    board = clocked.board()
    large = "x" * 16 * 1024 * 1024
    id = board.post(large)
    assert board.get(id)["payload"] == large
    with refused_like("ERR .*payload.* is longer than 16777216 bytes", board):
        board.post(large + "x")


def test_meta_has_at_most_64_fields(clocked_board):
    fields = {f"f{n}": str(n) for n in range(64)}
    clocked_board.post(id="j", meta=fields)
    assert clocked_board.get("j")["meta"] == fields
    with refused_like("ERR .*META.*", clocked_board):
        clocked_board.post(meta={**fields, "one": "more"})


def test_a_meta_field_has_1_to_255_bytes_and_its_value_a_limit(clocked_board):
    clocked_board.post(id="j", meta={"x" * 255: "y" * 4096})
    assert clocked_board.get("j")["meta"] == {"x" * 255: "y" * 4096}
    for wrong in [{"": "v"}, {"x" * 256: "v"}, {"f": "y" * 4097}]:
        with refused_like("ERR .+", clocked_board):
            clocked_board.post(meta=wrong)


@pytest.mark.parametrize(
    "words", ["META 0", "META 1 f", "META 2 f v", "META 2 f v g", "META x f v", "META -1"]
)
def test_meta_that_does_not_fit_its_count_is_refused(clocked_board, words):
    with refused_like("ERR .+", clocked_board):
        clocked_board.call("POST", "payload", *words.split())


# When the id is taken


@pytest.mark.parametrize("option", ["nx", "xx", "replace"])
def test_nx_xx_and_replace_need_an_id(clocked_board, option):
    with refused_like(f"ERR .*{option.upper()}.*", clocked_board):
        clocked_board.post(**{option: True})


@pytest.mark.parametrize("options", [("nx", "xx"), ("nx", "replace"), ("xx", "replace")])
def test_only_one_of_nx_xx_and_replace_may_be_given(clocked_board, options):
    clocked_board.post(id="j")
    with refused_like("ERR .+", clocked_board):
        clocked_board.post(id="j", **dict.fromkeys(options, True))


@pytest.mark.parametrize("state", STATES)
def test_an_id_is_taken_whatever_the_state_of_its_job(clocked_board, state):
    lives.LIVES[state](clocked_board)
    with refused("EXISTS j", clocked_board):
        clocked_board.post("again", id="j")
    before = clocked_board.digest()
    assert clocked_board.post("again", id="j", nx=True) is None
    assert clocked_board.digest() == before


def test_nx_posts_when_the_id_is_free(clocked_board):
    assert clocked_board.post("hello", id="j", nx=True) == "j"
    assert clocked_board.get("j")["payload"] == "hello"


def test_xx_only_replaces(clocked_board):
    assert clocked_board.post(id="j", xx=True) is None
    assert not clocked_board.client.exists("board")
    clocked_board.post("old", id="j")
    assert clocked_board.post("new", id="j", xx=True) == "j"
    assert clocked_board.get("j")["payload"] == "new"
    assert clocked_board.count() == 1


def test_replace_posts_when_the_id_is_free(clocked_board):
    assert clocked_board.post("hello", id="j", replace=True) == "j"
    assert clocked_board.state("j") == "ready"


@pytest.mark.parametrize("how", ["xx", "replace"])
@pytest.mark.parametrize("state", STATES)
def test_a_job_of_any_state_is_replaced(clocked_board, state, how):
    lives.LIVES[state](clocked_board)
    assert clocked_board.post("new", id="j", **{how: True}) == "j"
    job = clocked_board.get("j")
    assert (job["state"], job["payload"], job["left"]) == ("ready", "new", 10)
    for field in ("worker", "deadline", "kind", "message", "ended", "result", "progress", "stage"):
        assert field not in job
    assert clocked_board.claim_one()["attempt"] == 1
    assert clocked_board.info()["jobs"] == 1


def test_what_a_replacing_post_does_not_name_is_kept(clocked_board):
    clocked_board.post(
        "old", id="j", name="greet", queue="mail", priority=5, lease=7000, retries=2, meta={"to": "ann"}
    )
    clocked_board.post("new", id="j", replace=True, priority=6)
    job = clocked_board.get("j")
    assert (job["payload"], job["name"], job["queue"], job["priority"]) == ("new", "greet", "mail", 6)
    assert (job["left"], job["meta"]) == (2, {"to": "ann"})
    assert clocked_board.claim_one(queues=["mail"])["deadline"] == EPOCH + 7000


def test_a_replacing_post_may_change_everything(clocked_board):
    clocked_board.post("old", id="j", name="a", queue="one", meta={"to": "ann"})
    clocked_board.post("new", id="j", replace=True, name="b", queue="two", meta={"cc": "bob"}, delay=LONG)
    job = clocked_board.get("j")
    assert (job["name"], job["queue"], job["state"]) == ("b", "two", "scheduled")
    assert job["meta"]["cc"] == "bob"
    assert clocked_board.claim(queues=["one", "two"]) == []


def test_a_delay_is_not_kept_by_a_replacing_post(clocked_board):
    clocked_board.post(id="j", delay=LONG)
    clocked_board.post(id="j", replace=True)
    assert clocked_board.state("j") == "ready"


def test_failures_do_not_count_after_a_replacing_post(clocked_board):
    clocked_board.post(id="j", retries=1)
    token = lives.claim(clocked_board)
    clocked_board.fail("w1", "j", token=token)
    clocked_board.post(id="j", replace=True)
    assert clocked_board.get("j")["left"] == 1


def test_the_worker_of_a_replaced_job_has_lost_it(clocked_board):
    token = lives.claimed(clocked_board)
    clocked_board.post("new", id="j", replace=True)
    with refused("NOTCLAIMED ready", clocked_board):
        clocked_board.consume("w1", "j", token=token)
    assert clocked_board.claim_one("w2")["token"] > token


def test_a_cancel_request_ends_with_a_replacing_post(clocked_board):
    lives.cancel_requested(clocked_board)
    clocked_board.post("new", id="j", replace=True)
    token = lives.claim(clocked_board)
    assert clocked_board.consume("w1", "j", token=token) == "complete"


def test_a_replacement_is_told_in_the_history(clocked_board):
    clocked_board.post(id="j")
    clocked_board.post(id="j", replace=True)
    assert "replaced" in clocked_board.events("j")


def test_an_id_stays_taken_for_a_minute_after_its_job_was_dropped(clocked_board, clock):
    lives.gone(clocked_board)
    assert clocked_board.get("j") is None
    clock.advance(59_999)
    with refused("EXISTS j", clocked_board):
        clocked_board.post(id="j")
    assert clocked_board.post(id="j", nx=True) is None
    assert clocked_board.post(id="j", xx=True) is None
    clock.advance(1)
    assert clocked_board.post(id="j") == "j"


def test_replace_posts_anew_what_was_dropped(clocked_board):
    lives.gone(clocked_board, name="old")
    assert clocked_board.post("new", id="j", replace=True) == "j"
    job = clocked_board.get("j")
    assert (job["payload"], job["state"]) == ("new", "ready")
    assert not job.get("name")


def test_the_time_of_tombstones_is_a_setting(clocked_board, clock):
    clocked_board.set(tombstone_ttl=100)
    lives.gone(clocked_board)
    clock.advance(100)
    assert clocked_board.post(id="j") == "j"


def test_the_number_of_tombstones_is_a_setting(clocked_board):
    clocked_board.set(tombstones=2)
    for id in "abc":
        lives.gone(clocked_board, id)
    assert clocked_board.info()["tombstones"] == 2
    assert clocked_board.post(id="a") == "a"
    with refused("EXISTS c", clocked_board):
        clocked_board.post(id="c")


def test_no_tombstones_are_kept_when_the_setting_says_so(clocked_board):
    clocked_board.set(tombstones=0)
    lives.gone(clocked_board)
    assert clocked_board.post(id="j") == "j"


def test_an_id_in_an_error_is_cleaned(clocked):
    board = clocked.board(decode_responses=False)
    strange = b"a\r\n+OK\0%s%n"
    board.post("payload", id=strange)
    with pytest.raises(Exception, match="EXISTS") as caught:
        board.post("payload", id=strange)
    assert not set("\r\n\0") & set(error_text(caught.value))
    assert board.get(strange)["id"] == strange

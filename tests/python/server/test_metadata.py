"""What the server knows about the module: commands, docs, keys, ACL, memory, INFO, CONFIG, MODULE LIST."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import redis
from command_docs import CATEGORIES, command_info
from harness import MODULE, Board, Server
from rights import TABLE

WRITES = {
    "job.post": -3,
    "job.mpost": -4,
    "job.flow": -6,
    "job.claim": -3,
    "job.heartbeat": -4,
    "job.mheartbeat": -4,
    "job.step": -6,
    "job.await": -5,
    "job.signal": -5,
    "job.consume": -4,
    "job.mconsume": -4,
    "job.fail": -6,
    "job.abandon": -4,
    "job.mabandon": -4,
    "job.mfail": -6,
    "job.mtrash": -4,
    "job.trash": -4,
    "job.cancel": -4,
    "job.release": -4,
    "job.requeue": -4,
    "job.delete": -4,
    "job.update": -4,
    "job.depend|add": -5,
    "job.depend|remove": -5,
    "job.depend|clear": 4,
    "job.settings|set": -5,
    "job.settings|reset": -3,
    "job.schedule|set": -5,
    "job.schedule|del": 4,
    "job.schedule|pause": 4,
    "job.schedule|resume": 4,
    "job.schedule|run": 4,
}
READS = {
    "job.get": -3,
    "job.mget": -4,
    "job.list": -2,
    "job.count": -2,
    "job.history": 3,
    "job.queues": -2,
    "job.workers": -2,
    "job.kinds": -2,
    "job.groups": -2,
    "job.tags": -2,
    "job.info": -2,
    "job.stats": -2,
    "job.settings|get": -3,
    "job.schedule|get": 4,
    "job.schedule|list": -3,
}
"""Commands and their arity."""

ADDS = {f"job.{verb}" for verb, row in TABLE.items() if row.adds}
"""Commands that a full server refuses."""

FAST = {
    "job.get",
    "job.heartbeat",
    "job.post",
}
"""Commands whose time does not grow with anything but the logarithm of the jobs."""

KEYED = {**WRITES, **READS}


def bytes_to_text(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return reply.decode()
    if isinstance(reply, dict):
        return {bytes_to_text(key): bytes_to_text(value) for key, value in reply.items()}
    if isinstance(reply, (list, tuple, set)):
        return [bytes_to_text(one) for one in reply]
    return reply


def ask(server: Server, *words: Any) -> Any:
    """A command's reply as it came, whatever redis-py makes of it."""
    client = server.client()
    client.response_callbacks.clear()
    return bytes_to_text(client.execute_command(*words))


def words_for(name: str) -> list[str]:
    """A command that passes its arity, on the key `board`."""
    head = name.upper().split("|")
    missing = abs(KEYED[name]) - len(head) - 1
    return [*head, "board", *["1"] * missing]


# The command table


def test_arity_of_each_command(server: Server) -> None:
    info = command_info(server)
    assert {name: info[name]["arity"] for name in KEYED} == KEYED


def test_wrong_arity_is_refused_by_the_server(server: Server) -> None:
    client = server.client()
    for name, arity in KEYED.items():
        words = words_for(name)
        with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
            client.execute_command(*words[: abs(arity) - 1])


def test_writes_and_reads_are_flagged(server: Server) -> None:
    info = command_info(server)
    assert {name for name, row in info.items() if "write" in row["flags"]} & set(KEYED) == set(WRITES)
    assert {name for name, row in info.items() if "readonly" in row["flags"]} & set(KEYED) == set(READS)


def test_only_what_adds_is_denied_on_a_full_server(server: Server) -> None:
    denied = {name for name, row in command_info(server).items() if "denyoom" in row["flags"]}
    assert denied == ADDS


def test_only_claims_posts_and_waits_block(server: Server) -> None:
    blocking = {name for name, row in command_info(server).items() if "blocking" in row["flags"]}
    claims = {"job.claim", "job.consume", "job.mconsume", "job.fail", "job.abandon", "job.await", "job.trash"}
    claims |= {"job.output"}
    claims |= {"job.mfail", "job.mtrash"}
    assert blocking == {*claims, "job.wait", "job.post", "job.mpost"}


def test_commands_of_one_job_are_fast(server: Server) -> None:
    fast = {name for name, row in command_info(server).items() if "fast" in row["flags"]}
    assert fast >= FAST
    assert not fast & {"job.list", "job.count", "job.mpost", "job.mconsume", "job.info"}


def test_clock_exists_with_the_manual_clock_only(server: Server, clocked: Server) -> None:
    assert "job.clock" not in command_info(server)
    info = command_info(clocked)
    assert "job.clock" in info
    assert info["job.clock"]["keys"] == (0, 0, 0)


def test_internal_commands_are_refused_for_clients(board: Board) -> None:
    board.post(id_="a")
    before = board.call("INFO", "DIGEST")["digest"]
    for words in (["JOB.APPLY", "board", "x"], ["JOB.LOAD", "board", "x"]):
        with pytest.raises(redis.ResponseError, match="internal"):
            board.client.execute_command(*words)
    assert board.call("INFO", "DIGEST")["digest"] == before


def test_docs_of_each_command(server: Server) -> None:
    docs = ask(server, "COMMAND DOCS", *sorted({name.split("|")[0] for name in KEYED}))
    rows = {name.lower(): doc for name, doc in docs.items()}
    for doc in docs.values():
        rows.update({name.lower(): part for name, part in doc.get("subcommands", {}).items()})
    for name in KEYED:
        doc = rows[name]
        assert doc["group"] == "module"
        assert doc["module"] == "jobboard"
        assert re.fullmatch(r"\d+\.\d+\.\d+", doc["since"]), name
        assert doc["summary"].endswith("."), name
        assert doc["complexity"].startswith("O("), name


# Keys


def test_key_of_each_command(server: Server) -> None:
    for name in KEYED:
        assert ask(server, "COMMAND", "GETKEYS", *words_for(name)) == ["board"], name


def test_key_specs_tell_reads_from_writes(server: Server) -> None:
    info = command_info(server)
    for name in KEYED:
        [spec] = info[name]["specs"]
        flags = {flag.upper() for flag in spec["flags"]}
        assert ("RO" in flags) == (name in READS), name
        assert bool(flags & {"RW", "OW", "RM"}) == (name in WRITES), name
        index = 2 if "|" in name else 1
        assert spec["begin_search"]["spec"]["index"] == index, name
        assert info[name]["keys"] == (index, index, 1), name


def test_key_of_a_transaction_is_watched(server: Server) -> None:
    first, second = server.client(), server.client()
    with first.pipeline() as pipeline:
        pipeline.watch("board")
        second.execute_command("JOB.POST", "board", "x")
        pipeline.multi()
        pipeline.ping()
        with pytest.raises(redis.WatchError):
            pipeline.execute()


# ACL


@pytest.fixture
def user(server: Server) -> Callable[..., redis.Redis]:
    """Makes a user with these rules and gives a client of its."""

    def make(*rules: str) -> redis.Redis:
        admin = server.client()
        admin.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", *rules)
        return server.client(username="ann", password="secret")

    yield make
    server.client().execute_command("ACL", "DELUSER", "ann")


def refused(client: redis.Redis, *words: str) -> bool:
    try:
        client.execute_command(*words)
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError:
        return False
    return False


def test_user_without_the_key_is_refused(user: Callable[..., redis.Redis]) -> None:
    client = user("+@all", "~other")
    for name in KEYED:
        assert refused(client, *words_for(name)), name


def test_user_with_the_key_is_let_in(user: Callable[..., redis.Redis]) -> None:
    client = user("+@all", "~board")
    for name in KEYED:
        assert not refused(client, *words_for(name)), name


def test_user_who_may_read_a_key_cannot_write_it(user: Callable[..., redis.Redis]) -> None:
    client = user("+@all", "%R~board")
    assert {name for name in KEYED if refused(client, *words_for(name))} == set(WRITES)


def test_user_who_may_write_a_key_can_post_and_not_read(user: Callable[..., redis.Redis]) -> None:
    client = user("+@all", "%W~board")
    allowed = {name for name in KEYED if not refused(client, *words_for(name))}
    assert allowed == {f"job.{verb}" for verb, row in TABLE.items() if row.needs == "w"} & set(KEYED)


def test_user_is_held_to_its_commands(user: Callable[..., redis.Redis]) -> None:
    client = user("+job.claim", "+job.settings|get", "~*")
    assert not refused(client, "JOB.CLAIM", "board", "alice")
    assert not refused(client, "JOB.SETTINGS", "GET", "board")
    assert refused(client, "JOB.POST", "board", "x")
    assert refused(client, "JOB.SETTINGS", "SET", "board", "lease", "1000")


def test_categories_where_the_server_has_them(kind: str, server: Server) -> None:
    info = command_info(server)
    for name in KEYED:
        categories = info[name]["categories"]
        if not CATEGORIES[kind]:
            assert categories <= {"@write", "@read", "@fast", "@slow", "@blocking"}, name
            continue
        assert "@jobs" in categories, name
        assert ("@write" in categories) == (name in WRITES), name
        assert ("@read" in categories) == (name in READS), name
        assert ("@fast" in categories) == ("fast" in info[name]["flags"]), name
    if CATEGORIES[kind]:
        assert "@blocking" in info["job.claim"]["categories"]


def test_category_jobs_lets_a_user_in(kind: str, user: Callable[..., redis.Redis]) -> None:
    if not CATEGORIES[kind]:
        with pytest.raises(redis.ResponseError, match="Unknown command or category"):
            user("+@jobs", "~*")
        return
    client = user("+@jobs", "~*")
    assert not [name for name in KEYED if refused(client, *words_for(name))]
    assert refused(client, "SET", "x", "1")


# Memory and INFO


def test_memory_usage_grows_with_jobs_and_shrinks_again(board: Board) -> None:
    board.post(b"x" * 100)
    one = board.client.memory_usage("board")
    ids = board.post_many(1000, b"x" * 100)
    thousand = board.client.memory_usage("board")
    assert 1000 * 100 < thousand - one < 1000 * 1000
    board.delete(*ids)
    assert board.client.memory_usage("board") - one < (thousand - one) / 2


def test_type_and_encoding(board: Board) -> None:
    board.post()
    assert board.client.type("board") == "jobboard1"
    assert board.client.object("ENCODING", "board") == "raw"


def test_info_has_a_section(board: Board) -> None:
    board.post()
    text = ask_text(board.client, "INFO", "jobboard")
    assert re.search(r"^# jobboard", text, re.MULTILINE)
    fields = dict(re.findall(r"^(jobboard_[a-z0-9_]+):(.*?)\r?$", text, re.MULTILINE))
    assert fields
    everything = ask_text(board.client, "INFO", "everything")
    assert all(f"{name}:" in everything for name in fields)


def ask_text(client: redis.Redis, *words: str) -> str:
    client.response_callbacks.clear()
    return client.execute_command(*words)


# Settings


def test_module_list(server: Server) -> None:
    [module] = [row for row in ask(server, "MODULE", "LIST") if row["name"] == "jobboard"]
    assert module["ver"] >= 1


SET_AND_RANGE = {
    "lease": (1, 2**40),
    "retries": (-1, 2**31 - 1),
    "lapses": (-1, 2**31 - 1),
    "backoff-base": (0, 2**40),
    "backoff-max": (0, 2**40),
    "jitter": (0, 100),
    "timeout": (-1, 2**40),
    "expire": (-1, 2**40),
    "retain-complete": (-1, 2**40),
    "retain-result": (-1, 2**40),
    "retain-failed": (-1, 2**40),
    "retain-trashed": (-1, 2**40),
    "retain-cancelled": (-1, 2**40),
    "keep-complete": (0, 2**31 - 1),
    "keep-failed": (0, 2**31 - 1),
    "keep-trashed": (0, 2**31 - 1),
    "keep-cancelled": (0, 2**31 - 1),
}
"""Settings of the module, and the range of each."""


@pytest.mark.parametrize("name", SET_AND_RANGE)
def test_config_set_keeps_to_the_range(server: Server, name: str) -> None:
    client, setting = server.client(), f"jobboard.{name}"
    low, high = SET_AND_RANGE[name]
    with server.configured(**{setting.replace(".", "__").replace("-", "_"): low}):
        assert client.config_get(setting)[setting] == str(low)
        client.config_set(setting, high)
        assert client.config_get(setting)[setting] == str(high)
        for value in (low - 1, high + 1, "many", ""):
            with pytest.raises(redis.ResponseError):
                client.config_set(setting, value)
        assert client.config_get(setting)[setting] == str(high)


def test_config_set_counts_at_once(board: Board, server: Server) -> None:
    with server.configured(jobboard__lease=77_000):
        assert board.call("SETTINGS GET", "lease") == {"lease": [77_000, "module"]}


def test_config_rewrite_keeps_a_setting_over_a_restart(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server()
    client = server.client()
    client.config_set("jobboard.lease", 12_345)
    client.config_rewrite()
    assert "jobboard.lease 12345" in (server.folder / "redis.conf").read_text()
    server.restart(config=["jobboard.lease 12345"])
    assert server.client().config_get("jobboard.lease") == {"jobboard.lease": "12345"}


def test_config_file_line_is_checked(fresh_server: Callable[..., Server]) -> None:
    assert fresh_server(config=["jobboard.jitter 99"]).client().config_get("jobboard.jitter") == {
        "jobboard.jitter": "99"
    }
    with pytest.raises(AssertionError, match="jitter"):
        fresh_server(config=["jobboard.jitter 101"])


def test_load_arguments_set_settings(fresh_server: Callable[..., Server]) -> None:
    client = fresh_server("lease", 60_000, "retries", -1, "foreign-effects", "yes").client()
    assert client.config_get("jobboard.lease") == {"jobboard.lease": "60000"}
    assert client.config_get("jobboard.retries") == {"jobboard.retries": "-1"}
    assert client.config_get("jobboard.foreign-effects") == {"jobboard.foreign-effects": "yes"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("colour blue", "unknown load argument 'colour'"),
        ("lease 1000 colour blue", "unknown load argument 'colour'"),
        ("lease", "'lease' has no value"),
        ("lease 0", "lease must be an integer from 1 to"),
        ("lease soon", "lease must be an integer from 1 to"),
        (f"lease {2**40 + 1}", "lease must be an integer from 1 to"),
        (f"lease {2**64}", "lease must be an integer from 1 to"),
        ("jitter 101", "jitter must be an integer from 0 to 100"),
        ("clock broken", "clock must be system or manual"),
        ("foreign-effects maybe", "foreign-effects must be yes or no"),
    ],
)
def test_bad_load_argument_is_refused_with_a_line_in_the_log(
    fresh_server: Callable[..., Server], arguments: str, told: str
) -> None:
    server = fresh_server(module=False)
    client = server.client()
    with pytest.raises(redis.ResponseError):
        client.execute_command("MODULE", "LOAD", str(MODULE), *arguments.split())
    assert "jobboard" not in [row["name"] for row in ask(server, "MODULE", "LIST")]
    assert told in server.log
    client.execute_command("MODULE", "LOAD", str(MODULE))
    assert server.board().post(id_="a") == "a"


def test_module_with_boards_cannot_be_unloaded(board: Board) -> None:
    board.post()
    with pytest.raises(redis.ResponseError):
        board.client.execute_command("MODULE", "UNLOAD", "jobboard")
    assert board.count() == 1

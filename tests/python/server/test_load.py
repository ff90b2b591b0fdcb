"""Loading the module: its arguments, its settings, the repository's redis.conf."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from harness import MODULE, Server, wait_until
from harness.server import ROOT

DEFAULTS = {
    "lease": 30000,
    "retries": 10,
    "lapses": 5,
    "lapse-delay": 0,
    "backoff-base": 5000,
    "backoff-max": 3600000,
    "jitter": 10,
    "timeout": -1,
    "expire": -1,
    "grace": 0,
    "cancel-grace": -1,
    "session-grace": 0,
    "retain-complete": 0,
    "retain-result": 3600000,
    "retain-failed": 2592000000,
    "retain-trashed": 2592000000,
    "retain-cancelled": 86400000,
    "keep-complete": 100000,
    "keep-failed": 100000,
    "keep-trashed": 100000,
    "keep-cancelled": 100000,
    "events": 0,
    "events-tracked": 0,
    "recovery-grace": 5000,
    "max-payload": 16777216,
    "max-text": 4096,
    "max-batch": 10000,
    "max-shared": 8388608,
    "max-reply": 67108864,
    "max-blocked-posts": 10000,
    "max-blocked-bytes": 67108864,
    "foreign-effects": "no",
}
"""Each setting of the module that is a configuration, and its default."""


def refused(fresh_server: Callable[..., Server], *module_args: object) -> str:
    """Starts a server with load arguments that must keep it from starting, and returns its log."""
    server = fresh_server(*module_args, wait=False)
    wait_until(lambda: not server.alive, what="the server refuses to start")
    log = server.log
    assert server.process.returncode == 1, log
    server.kill()
    return log


def test_every_setting_has_its_default(server: Server) -> None:
    found = server.client().config_get("jobboard.*")
    assert found == {f"jobboard.{name}": str(value) for name, value in DEFAULTS.items()}


def test_load_arguments_are_settings(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("lease", 12345, "retries", -1, "foreign-effects", "yes")
    client = server.client()
    assert client.config_get("jobboard.lease") == {"jobboard.lease": "12345"}
    assert client.config_get("jobboard.retries") == {"jobboard.retries": "-1"}
    assert client.config_get("jobboard.foreign-effects") == {"jobboard.foreign-effects": "yes"}
    assert server.board().settings("lease") == {"lease": [12345, "module"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("leese", 5),
        ("lease", 0),
        ("lease", 2**40 + 1),
        ("lease", "soon"),
        ("lease", ""),
        ("lease",),
        ("lease", 5, "lease", 6),
        ("retries", -2),
        ("jitter", 101),
        ("max-batch", 10**30),
        ("foreign-effects", "perhaps"),
        ("clock", "fast"),
        ("%s%n", 1),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)).replace("%", "percent-"),
)
def test_a_wrong_load_argument_is_refused(fresh_server: Callable[..., Server], arguments: tuple) -> None:
    arguments = ['""' if word == "" else word for word in arguments]
    log = refused(fresh_server, *arguments)
    assert str(arguments[0]) in log, "the log does not name the argument"


def test_the_clock_command_exists_with_a_manual_clock_only(server: Server, clocked: Server) -> None:
    with pytest.raises(redis.ResponseError, match="unknown command"):
        server.clock.now()
    before = clocked.clock.now()
    assert clocked.clock.advance(5) == before + 5


def test_the_clock_cannot_be_changed_at_run_time(server: Server) -> None:
    with pytest.raises(redis.ResponseError):
        server.client().config_set("jobboard.clock", "manual")


@pytest.mark.parametrize(
    ("name", "value"),
    [("lease", 0), ("lease", "x"), ("retries", -2), ("jitter", 101), ("max-batch", 0), ("keep-failed", -1)],
)
def test_config_set_checks_the_range(server: Server, name: str, value: object) -> None:
    client = server.client()
    with pytest.raises(redis.ResponseError):
        client.config_set(f"jobboard.{name}", value)
    assert client.config_get(f"jobboard.{name}") == {f"jobboard.{name}": str(DEFAULTS[name])}


def test_config_set_is_in_force_at_once(server: Server) -> None:
    board = server.board()
    with server.configured(jobboard__lease=1234567):
        board.post()
        job = board.claim_one(fields=["deadline", "claimed"])
    assert job["deadline"] - job["claimed"] == 1234567


def test_config_rewrite_keeps_a_changed_setting(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("lease", 12345)
    client = server.client()
    client.config_set("jobboard.retries", 3)
    client.config_rewrite()
    written = (server.folder / "redis.conf").read_text()
    assert "jobboard.retries 3" in written
    server.stop()
    server.start(rewrite_config=False)
    found = server.client().config_get("jobboard.*")
    assert found["jobboard.retries"] == "3"
    assert found["jobboard.lease"] == "12345"


def test_the_module_cannot_be_unloaded_or_loaded_twice(server: Server) -> None:
    client = server.client()
    with pytest.raises(redis.ResponseError):
        client.execute_command("MODULE", "UNLOAD", "jobboard")
    with pytest.raises(redis.ResponseError):
        client.execute_command("MODULE", "LOAD", str(MODULE))
    assert "the module is loaded already: keep one loadmodule line for it" in server.log
    assert client.ping()


def test_the_module_can_be_loaded_into_a_running_server(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server(module=False)
    server.client().execute_command("MODULE", "LOAD", str(MODULE), "lease", "777")
    assert server.client().config_get("jobboard.lease") == {"jobboard.lease": "777"}
    board = server.board()
    board.post(id="a")
    assert board.claim_one()["id"] == "a"


OTHER_MODULE = """
typedef int command(void *ctx, void **argv, int argc);
typedef void attribs(void *ctx, const char *name, int version, int api);
typedef int create(void *ctx, const char *name, command *run, const char *flags, int key, int last, int step);

static int nothing(void *ctx, void **argv, int argc) { return 0; }

int RedisModule_OnLoad(void *ctx, void **argv, int argc) {
    int (*api)(const char *name, void *function) = ((void **)ctx)[0];
    attribs *set_attribs;
    create *create_command;
    api("RedisModule_SetModuleAttribs", &set_attribs);
    api("RedisModule_CreateCommand", &create_command);
    set_attribs(ctx, "other", 1, 1);
    return create_command(ctx, COMMAND, nothing, "readonly", 0, 0, 0);
}
"""
"""A module that has a command of that name."""


@pytest.mark.parametrize("name", ["job.post", "job.schedule", "job.probe"])
def test_a_command_that_another_module_has_keeps_ours_from_loading(
    fresh_server: Callable[..., Server], tmp_path: Path, name: str
) -> None:
    other = tmp_path / "other.so"
    build = ["cc", "-shared", "-fPIC", f'-DCOMMAND="{name}"', "-o", str(other), "-xc", "-"]
    subprocess.run(build, input=OTHER_MODULE, text=True, check=True)
    server = fresh_server(module=False)
    client = server.client()
    client.execute_command("MODULE", "LOAD", str(other))
    with pytest.raises(redis.ResponseError):
        client.execute_command("MODULE", "LOAD", str(MODULE))
    assert f"the command {name} cannot be registered" in server.log
    client.set("a", 1)
    assert client.flushall() and client.ping(), "nothing of ours is called after that"
    assert "jobboard" not in {module["name"] for module in client.module_list()}


def test_the_repository_s_redis_conf_works_and_shows_the_defaults(
    fresh_server: Callable[..., Server],
) -> None:
    ours = ("port ", "dir ", "loadmodule ")
    lines = (ROOT / "redis.conf").read_text().splitlines()
    server = fresh_server(config=[line for line in lines if not line.startswith(ours)])
    client = server.client()
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert client.config_get("jobboard.*") == {f"jobboard.{n}": str(value) for n, value in DEFAULTS.items()}
    assert "loadmodule target/release/libjobboard.so" in lines


def test_a_setting_that_changes_back_and_forth_costs_no_memory(server: Server) -> None:
    """Every configuration that was in force stays; one that comes again is the same."""
    client = server.client()
    with server.configured(jobboard__max_text=4096):

        def change(times: int) -> int:
            pipe = client.pipeline(transaction=False)
            for number in range(times):
                pipe.config_set("jobboard.max-text", 1000 + number % 2)
            pipe.execute()
            return client.info("memory")["used_memory"]

        before = change(100)
        assert change(4000) - before < 400_000

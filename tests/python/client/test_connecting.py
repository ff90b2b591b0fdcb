"""Where a board's server is, and what is said when that cannot be."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import jobboard
import pytest
import redis
from jobboard import AsyncBoard, Board, ShardedBoard, Worker
from jobboard.cli import main
from jobboard.connecting import sentinels

from .conftest import TESTS


def test_the_environment_says_where_the_server_is(server, monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    Board("board").post(1, id="a")
    assert ShardedBoard("b", shards=2).get("a") is None
    assert asyncio.run(_get(AsyncBoard("board"))) == 1
    monkeypatch.setenv("JOBBOARD_URL", "")
    assert Board("board").client.connection_pool.connection_kwargs["port"] == 6379


async def _get(board: AsyncBoard):
    found = (await board.get("a")).payload
    await board.client.aclose()
    return found


def worker(*words: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "jobboard", "worker", *words, "--burst"],
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("how", [["--threads", "1"], ["--processes", "1"]], ids=["threads", "processes"])
def test_a_worker_has_a_url(server, jobs, how) -> None:
    jobs.post(3, id="a", name="square")
    url = f"redis://127.0.0.1:{server.port}"
    done = worker("client_app:board", "--url", url, *how, JOBBOARD_URL="redis://127.0.0.1:1")
    assert done.returncode == 0, done.stderr
    assert jobs.result("a", timeout="1s") == 9


@pytest.mark.parametrize(
    ("target", "words", "sentence"),
    [
        (
            "own",
            ["--url", "redis://127.0.0.1:1"],
            "makeshift:own names its own client: without one, Board(name)",
        ),
        ("boards", [], "a worker works on one board: start a Worker for each"),
        ("nothing", [], "a worker needs a Board or a ShardedBoard with handlers, not an object of NoneType"),
        (
            "asynchronous",
            ["--threads", "1"],
            "handlers of an AsyncBoard share one event loop: mode='asyncio'",
        ),
    ],
)
def test_a_wrong_target_is_told_as_such(tmp_path, target, words, sentence) -> None:
    (tmp_path / "makeshift.py").write_text(
        "import jobboard, redis\n"
        "own = jobboard.Board('b', redis.Redis(port=1))\n"
        "boards = [own]\n"
        "nothing = None\n"
        "asynchronous = jobboard.AsyncBoard('b')\n"
        "asynchronous.handler()(print)\n"
    )
    done = worker(f"makeshift:{target}", *words, PYTHONPATH=str(tmp_path))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert sentence in done.stderr


def test_wrong_objects_are_told_as_such() -> None:
    for wrong in (1, {"host": "x"}, [redis.Redis()], object()):
        with pytest.raises(
            TypeError, match="a board needs a redis.Redis, a redis.RedisCluster or a URL, not"
        ):
            Board("b", wrong)
        with pytest.raises(TypeError, match="a board needs a redis.asyncio.Redis"):
            AsyncBoard("b", wrong)
    with pytest.raises(TypeError, match="use AsyncBoard"):
        Board("b", redis.asyncio.Redis())
    with pytest.raises(TypeError, match="use AsyncBoard"):
        ShardedBoard("b", redis.asyncio.Redis(), shards=2)
    with pytest.raises(TypeError, match="use Board"):
        AsyncBoard("b", redis.Redis())
    for name in (redis.Redis(), None, ""):
        with pytest.raises(TypeError, match="the name of a board is text"):
            Board(name)
    with pytest.raises(TypeError, match="start a Worker for each"):
        Worker([Board("a"), Board("b")])
    with pytest.raises(TypeError, match="not an object of Redis"):
        Worker(redis.Redis())


def test_a_server_without_the_module_is_told_as_such(fresh_server, capsys) -> None:
    server = fresh_server(module=False)
    board = Board("board", server.client(decode_responses=False))
    board.handlers.handler()(lambda context, payload: None)
    for ask in (lambda: board.post(1), lambda: board.get("a"), lambda: Worker(board).run(burst=True)):
        with pytest.raises(jobboard.NoModule, match="^this server has no jobboard module: .*unknown command"):
            ask()
    assert main(["list", "board", "--url", f"redis://127.0.0.1:{server.port}"]) == 1
    assert capsys.readouterr().err.startswith("jobboard: this server has no jobboard module: ")
    with pytest.raises(redis.ResponseError) as other:
        board.client.execute_command("NOSUCH")
    assert not isinstance(other.value, jobboard.NoModule)


@pytest.mark.parametrize(
    ("url", "hosts", "service", "options", "own"),
    [
        ("sentinel://a:1,b/shop", [("a", 1), ("b", 26379)], "shop", {}, {}),
        ("redis+sentinel://[::1]:7,c/shop/3", [("::1", 7), ("c", 26379)], "shop", {"db": 3}, {}),
        (
            "sentinel://ann:s%40y@a/shop?socket_timeout=1.5&sentinel_password=x&sentinel_socket_timeout=9",
            [("a", 26379)],
            "shop",
            {"username": "ann", "password": "s@y", "socket_timeout": 1.5},
            {"password": "x", "socket_timeout": 9.0},
        ),
        (
            "rediss+sentinel://a/shop?ssl_ca_certs=f",
            [("a", 26379)],
            "shop",
            {"ssl": True, "ssl_ca_certs": "f"},
            {"ssl": True, "ssl_ca_certs": "f"},
        ),
    ],
)
def test_urls_of_sentinels(url, hosts, service, options, own) -> None:
    found = sentinels(url)
    assert (found.hosts, found.service) == (hosts, service)
    assert found.options == options
    assert {name: found.own[name] for name in own} == own
    assert set(found.own) == {"socket_timeout", "socket_connect_timeout", *own}


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://",
        "sentinel://a",
        "sentinel://a/",
        "sentinel:///shop",
        "sentinel://a:x/s",
        "sentinel://a/s/x",
        "sentinel://a,,b/s",
    ],
)
def test_wrong_urls_of_sentinels(url, capsys) -> None:
    with pytest.raises(ValueError, match=r"the URL of Sentinels is sentinel://\[user"):
        Board("b", url)
    assert main(["list", "b", "--url", url]) == 2
    assert "the URL of Sentinels is" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379?password=a@b",
        "redis://u:a@127.0.0.1/0?client_name=a@b",
        "redis://[::1]:6379/0?password=a@b",
        "unix:///tmp/a@b.sock?db=1",
        "sentinel://a:26379,b:26379/service?password=a@b",
    ],
)
def test_an_at_sign_elsewhere_is_no_mistake(url) -> None:
    Board("b", url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "redis://127.0.0.1:6379/x",
            "names the database 'x': write its number, such as redis://127.0.0.1:6379/0",
        ),
        ("rediss://127.0.0.1:6379/1/2", "names the database '1/2'"),
        ("sentinel://a/service/x", "the URL of Sentinels is"),
        ("redis://127.0.0.1:6379?colour=red", "there is no option 'colour'"),
        ("redis://127.0.0.1:port", "is no URL of a server"),
        ("redis://u:top#secret@127.0.0.1", "is written %2F there"),
        ("redis://u:top/secret@127.0.0.1", "is written %2F there"),
        ("redis://u:1234/secret@127.0.0.1", "is written %2F there"),
        ("redis://u:top?secret@127.0.0.1", "is written %2F there"),
        ("sentinel://u:top?secret@127.0.0.1/main", "is written %2F there"),
        ("http://127.0.0.1", "is no URL of a server"),
        ("127.0.0.1:6379", "is no URL of a server"),
    ],
)
def test_a_wrong_url_is_told_with_what_said_it(monkeypatch, capsys, tmp_path, server, url, says) -> None:
    right = f"redis://127.0.0.1:{server.port}"
    for make in (Board, AsyncBoard):
        with pytest.raises(ValueError, match="in the URL") as found:
            make("b", url)
        assert says in str(found.value) and "secret" not in str(found.value)
    commands = {
        "--url": ["list", "b", "--url", url],
        "--to": ["copy", "b", "--url", right, "--to", url],
        "--from": ["import", "rq", "b", "--url", right, "--from", url],
    }
    for option, words in commands.items():
        assert main(words) > 0
        told = capsys.readouterr().err
        assert says in told and f" in {option}" in told, told
    monkeypatch.setenv("JOBBOARD_URL", url)
    assert main(["list", "b"]) == 2
    told = capsys.readouterr().err
    assert says in told and "in $JOBBOARD_URL" in told, told


def test_no_server_is_told_with_what_named_it(monkeypatch, capsys, server, jobs) -> None:
    nowhere, right = "redis://127.0.0.1:1", f"redis://127.0.0.1:{server.port}"
    jobs.post(1)
    monkeypatch.setenv("JOBBOARD_URL", nowhere)
    for words, name in (
        (["list", "board"], r"$JOBBOARD_URL"),
        (["list", "board", "--url", nowhere], "--url"),
        (["copy", "board", "--url", right, "--to", nowhere], "--to"),
        (["list", "board", "--url", nowhere, "--cluster"], "--url"),
        (["list", "board", "--url", right, "--cluster"], "--url"),
        (["copy", "board", "--url", right, "--to", right, "--to-cluster"], "--to"),
    ):
        assert main(words) == 1
        told = capsys.readouterr().err
        assert f"{name} says where the server is" in told or f" in {name}: " in told, told
    assert not jobs.info()["paused"]

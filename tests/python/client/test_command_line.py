"""Every command of `jobboard --help` with wrong files, types and URLs, and servers out of reach or of
another kind: a sentence, and no traceback.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jobboard
import pytest
from harness.server import free_port
from jobboard.cli import build_parser, main

SKIPPED = {"serve", "completion", "top", "mcp"}
"""They start servers, write scripts of shells, look again and again, or speak a protocol."""

ENDING = {"archive": ["--once"], "watch": ["--timeout", "10ms"]}
"""What lets a command end that otherwise waits."""

WRONG_TEXTS = ["", "x", "-1", "[", "\udcff", "a\x00b", "9" * 400, "=", "=x", "{}", "*", "missing/file", "/"]
WRONG_URLS = [
    *("", "x", "redis://127.0.0.1:99999", "redis://127.0.0.1/x", "http://127.0.0.1", "sentinel://a"),
    *("redis://h?colour=red", "redis://[::1", "redis://127.0.0.1:1?socket_timeout=soon"),
]
UNREACHED = [
    "redis://127.0.0.1:1",
    "rediss://127.0.0.1:1",
    "sentinel://127.0.0.1:1/s",
    "unix:///missing.sock",
]
"""These take a while: for some commands alone."""


def commands(parser: argparse.ArgumentParser, words: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Each command with its parser."""
    inner = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for name, sub in inner[0].choices.items() if inner else ():
        if words or name not in SKIPPED:
            yield from commands(sub, [*words, name])


FOUND = dict((" ".join(words), parser) for words, parser in commands(build_parser(), []))
RIGHT = {
    "board": "board",
    "target": "makeshift:nothing",
    "store": "kept.db",
    "file": "flow.json",
    "id": "a",
    "payload": "1",
    "ids": "a",
    "workers": "a",
    "places": "keys",
    "verb": "run",
    "settings": "lease",
    "library": "rq",
    "to": None,
    "from_": None,
}


def positional(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [one for one in parser._actions if not one.option_strings]


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [one for one in parser._actions if one.option_strings and one.dest != "help"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[list[str]], None]]:
    """Runs a command. The test fails with all those that have shown a traceback."""
    wrong: list[str] = []

    def run(words: list[str]) -> None:
        wrong.extend(tracebacks(words, capsys))

    yield run
    assert not wrong, "\n".join(wrong)


def tracebacks(words: list[str], capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """What it raises but SystemExit is a traceback for a user."""
    shown = " ".join(words)[:300]
    try:
        main(words)
    except SystemExit as end:
        if end.code not in (0, 2):
            yield f"jobboard {shown!r}: exit {end.code!r}"
    except BaseException as error:
        yield f"jobboard {shown!r}: {type(error).__name__}: {error}"
    if "Traceback" in (said := capsys.readouterr().err):
        yield f"jobboard {shown!r}: {said}"


def calls(words: list[str], parser: argparse.ArgumentParser, right: str) -> Iterator[list[str]]:
    """Each argument once with each wrong text, the others as they should be."""
    own = positional(parser)
    given = [RIGHT.get(one.dest) or (list(one.choices)[0] if one.choices else "x") for one in own]
    needed = [
        part
        for one in options(parser)
        if one.required
        for part in (one.option_strings[0], right if "URL" in str(one.metavar) else "x")
    ]
    texts = itertools.cycle(WRONG_TEXTS)
    url = ["--url", right] if any("--url" in one.option_strings for one in options(parser)) else []
    for number, wrong in itertools.product(range(len(own)), WRONG_TEXTS):
        changed = [wrong if at == number else value for at, value in enumerate(given)]
        yield (
            [*words, *needed, *url, "--", *changed] if wrong[:1] == "-" else [*words, *changed, *needed, *url]
        )
    for option in options(parser):
        if option.nargs == 0:
            if option.dest not in ("reload", "cluster", "to_cluster"):
                yield [*words, *given, *needed, *url, option.option_strings[0]]
            continue
        is_url = "URL" in str(option.metavar) or option.dest == "url"
        urls = [*WRONG_URLS, *(UNREACHED if words[-1] in ("copy", "list", "rq") else [])]
        for wrong in urls if is_url else itertools.islice(texts, 4):
            yield [*words, *given, *needed, *url, f"{option.option_strings[-1]}={wrong}"]


@pytest.mark.parametrize("name", FOUND)
def test_wrong_arguments(name, server, jobs, tmp_path, monkeypatch, call) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("makeshift.py").write_text("nothing = None\n")
    Path("flow.json").write_text("[]")
    jobs.post({"a": 1}, id="a", name="n")
    always = ENDING.get(name, [])
    for words in calls(name.split(), FOUND[name], f"redis://127.0.0.1:{server.port}"):
        monkeypatch.setattr("sys.stdin", io.StringIO("{"))
        call([*words[: len(name.split())], *always, *words[len(name.split()) :]])


@pytest.mark.parametrize("name", FOUND)
def test_servers_that_are_none(name, server, fresh_server, tmp_path, monkeypatch, call) -> None:
    """Out of reach, without the module, no cluster, with another password."""
    parser = FOUND[name]
    if not any("--url" in one.option_strings for one in options(parser)) or name == "worker":
        pytest.skip("it asks no server")
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text('[{"payload": 1}]')
    plain, right = fresh_server(module=False), f"redis://127.0.0.1:{server.port}"
    nowhere = f"redis://127.0.0.1:{free_port()}"
    own = [RIGHT.get(one.dest) or "x" for one in positional(parser)]
    needed = [
        part
        for one in options(parser)
        if one.required
        for part in (one.option_strings[0], right if "URL" in str(one.metavar) else "x")
    ]
    always = ENDING.get(name, [])
    for url in (nowhere, f"redis://127.0.0.1:{plain.port}", f"redis://me:wrong@127.0.0.1:{server.port}"):
        call([*name.split(), *own, *needed, *always, "--url", url])
    for url in (nowhere, right):
        call([*name.split(), *own, *needed, *always, "--url", url, "--cluster"])


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["queues"]], ids=" ".join)
def test_a_board_that_does_not_exist_is_told(server, words) -> None:
    verb, *more = words
    found = jobboard_command(server, verb, "nosuch", *more)
    assert "this server has no board 'nosuch'" in found.stderr
    jobboard.Board("nosuch", server.client(decode_responses=False)).post(1)
    assert "no board" not in jobboard_command(server, verb, "nosuch", *more).stderr


@pytest.mark.every_server
def test_the_boards_of_a_server_without_the_module(fresh_server) -> None:
    found = jobboard_command(fresh_server(module=False), "boards")
    assert found.returncode == 1 and "this server has no jobboard module" in found.stderr


def jobboard_command(server, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobboard", *words, "--url", f"redis://127.0.0.1:{server.port}"],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_explain_prints_commands_of_the_board_and_the_job(server) -> None:
    board = jobboard.Board("my mails", server.client(decode_responses=False))
    board.post(1, id="a", delay="1h")
    said = jobboard_command(server, "explain", "my mails", "a").stdout
    assert "JOB.UPDATE 'my mails' 1 a SET DELAY 0" in said


def test_explain_says_why_the_last_worker_gave_a_job_back(server) -> None:
    board = jobboard.Board("mails", server.client(decode_responses=False))
    board.post(1, id="a")
    assert "gave it back" not in jobboard_command(server, "explain", "mails", "a").stdout
    [job] = board.claim("w1")
    board.abandon("w1", "a", token=job.token, reason="no handler of the name 'x'", delay="1h")
    said = jobboard_command(server, "explain", "mails", "a").stdout
    assert "- The last worker gave it back: no handler of the name 'x'.\n" in said
    board.update("a", delay="0s")
    board.claim("w2")
    assert "gave it back" not in jobboard_command(server, "explain", "mails", "a").stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["list", "--help"], ["queues", "board"]])
@pytest.mark.parametrize("to, status", [("pipe", 128 + signal.SIGPIPE), ("full", 1)])
def test_output_that_nobody_takes(server, words, to, status) -> None:
    """Short output is written at the end, where Python would tell of it."""
    jobboard.Board("board", server.client()).post(1)
    environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    environment.pop("PYTHONUNBUFFERED", None)
    reader, output = os.pipe() if to == "pipe" else (-1, os.open("/dev/full", os.O_WRONLY))
    if to == "pipe":
        os.close(reader)
    command = [sys.executable, "-m", "jobboard", *words]
    try:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, env=environment, text=True)
    finally:
        os.close(output)
    said = "" if to == "pipe" else "jobboard: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (status, said)

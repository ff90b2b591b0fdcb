"""Fixtures of the importers' tests.

imported   runs `jobboard import` in this process: imported("rq", "board", "--dry-run") gives its exit code
           and what it printed
source     a client of the server with the other library's keys, replies in bytes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest
import redis
from harness import Server
from jobboard.importers import add_command


@pytest.fixture
def imported(server: Server, capsys: pytest.CaptureFixture) -> Callable[..., tuple[int, str]]:
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers(required=True))

    def run(library: str, board: str = "board", *words: str) -> tuple[int, str]:
        url = f"redis://127.0.0.1:{server.port}"
        own = [] if "--from" in words else ["--from" if "--url" in words else "--url", url]
        arguments = parser.parse_args(["import", library, board, *words, *own])
        code = arguments.run(arguments)
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def source(server: Server) -> redis.Redis:
    return server.raw_client()

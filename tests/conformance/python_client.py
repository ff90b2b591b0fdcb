"""The Python package as a client of the conformance suite: docs/clients.md says what this has to do.

python_client.py calls --port 6379      a call a line on stdin, an answer a line on stdout
python_client.py work --port 6379 --board board --name w1 --lease 1000 [--also NAME]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from jobboard import Board, BoardError, Context, JobFailed, JobUnknown, Node, NoRetry, ResultDropped, Worker
from jobboard.durations import to_ms

CALLS: dict[str, Callable[..., Any]] = {}


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    CALLS[function.__name__] = function
    return function


def options_of(options: dict[str, Any]) -> dict[str, Any]:
    """The same options in this package's words."""
    found = dict(options)
    if "not" in found:
        found["not_"] = found.pop("not")
    return found


def record(job: Any) -> dict[str, Any]:
    fields = "id state queue name payload group priority attempt left token worker kind message stage"
    fields += " progress meta reason after tags user unique cost previous"
    return {name: getattr(job, name, None) for name in fields.split()}


@call
def duration(board: Board, text: str) -> int:
    return to_ms(text)


@call
def post(board: Board, payload: Any, options: dict[str, Any] | None = None) -> Any:
    return board.post(payload, **options_of(options or {}))


@call
def post_many(board: Board, payloads: list[Any], options: dict[str, Any] | None = None) -> Any:
    return board.post_many(payloads, **options_of(options or {}))


@call
def flow(board: Board, nodes: list[dict[str, Any]]) -> Any:
    return board.flow([Node(node.pop("label"), node.pop("payload"), **node) for node in nodes])


@call
def get(board: Board, id: str) -> Any:
    job = board.get(id)
    return job and record(job)


@call
def list(board: Board, filters: dict[str, Any]) -> Any:
    return [job.id for job in board.list(**options_of(filters))]


@call
def count(board: Board, filters: dict[str, Any]) -> int:
    return board.count(**options_of(filters))


@call
def cancel(board: Board, ids: Any) -> Any:
    return board.cancel(*ids)


@call
def requeue(board: Board, ids: Any) -> int:
    return board.requeue(*ids).count


@call
def delete(board: Board, ids: Any) -> int:
    return board.delete(*ids).count


@call
def update(board: Board, ids: Any, options: dict[str, Any]) -> int:
    return board.update(*ids, **options).count


@call
def claim(board: Board, worker: str) -> Any:
    return [record(job) for job in board.claim(worker)]


@call
def heartbeat(board: Board, worker: str, id: str, token: int, options: dict[str, Any] | None = None) -> Any:
    return {"cancel": board.heartbeat(worker, id, token=token, **(options or {})).cancel}


@call
def consume(board: Board, worker: str, id: str, token: int, options: dict[str, Any] | None = None) -> Any:
    return board.consume(worker, id, token=token, **(options or {}))


@call
def fail(
    board: Board,
    worker: str,
    id: str,
    token: int,
    kind: str,
    message: str,
    options: dict[str, Any] | None = None,
) -> Any:
    found = board.fail(worker, id, kind, message, token=token, **(options or {}))
    return {"state": found.state, "left": found.left}


@call
def abandon(board: Board, worker: str, id: str, token: int) -> None:
    board.abandon(worker, id, token=token)


@call
def trash(board: Board, worker: str, id: str, token: int, options: dict[str, Any]) -> None:
    board.trash(worker, id, token=token, **options)


@call
def pause(board: Board, options: dict[str, Any]) -> None:
    board.pause(**options)


@call
def resume(board: Board, options: dict[str, Any]) -> None:
    board.resume(**options)


@call
def settings_set(board: Board, settings: dict[str, Any], options: dict[str, Any]) -> None:
    board.settings_set(settings, **options)


@call
def settings_get(board: Board, setting: str, options: dict[str, Any]) -> Any:
    found = board.settings_get(setting, **options)[setting]
    value = found.value
    return {
        "value": value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value,
        "source": found.source,
    }


@call
def schedule_set(board: Board, id: str, payload: Any, options: dict[str, Any]) -> None:
    board.schedule_set(id, payload, **options)


@call
def schedule_run(board: Board, id: str) -> Any:
    return board.schedule_run(id)


@call
def schedule_del(board: Board, id: str) -> None:
    board.schedule_del(id)


@call
def result(board: Board, id: str, timeout: str = "30s") -> Any:
    return board.result(id, timeout=timeout)


def answer(board: Board, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"returns": CALLS[request.pop("call")](board, **request)}
    except BoardError as error:
        return {"raises": error.code, "detail": error.detail}
    except (JobFailed, ResultDropped, JobUnknown) as error:
        kind = {JobFailed: "failed", ResultDropped: "dropped", JobUnknown: "unknown"}[type(error)]
        return {"raises": kind}
    except TimeoutError:
        return {"raises": "timeout"}
    except (TypeError, ValueError) as error:
        return {"raises": "argument", "detail": str(error)}


def work(given: argparse.Namespace) -> None:
    logging.basicConfig(level="INFO")
    board = Board(given.board, f"redis://127.0.0.1:{given.port}", codec="raw")

    def checksum(context: Context, payload: bytes) -> bytes:
        hashed = hashlib.sha256()
        try:
            with open(payload, "rb", buffering=0) as file:
                while chunk := file.read(1 << 16):
                    hashed.update(chunk)
                    context.check()
        except OSError as error:
            raise NoRetry(str(error), kind="unreadable") from None
        return hashed.hexdigest().encode()

    @board.handler("approved-checksum")
    def approved_checksum(context: Context, payload: bytes) -> bytes:
        digest = context.step("digest", checksum, context, payload)
        context.wait_for("approved")
        return digest

    for name in ("checksum", *given.also):
        board.handler(name)(checksum)
    worker = Worker(
        board, concurrency=1, prefetch=7, name=given.name, lease=f"{given.lease}ms", stop_within="60s"
    )
    worker.run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["calls", "work"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--board", default="board")
    parser.add_argument("--name")
    parser.add_argument("--lease", type=int, default=30_000)
    parser.add_argument("--also", action="append", default=[])
    given = parser.parse_args()
    if given.what == "work":
        work(given)
        return
    board = Board(given.board, f"redis://127.0.0.1:{given.port}")
    for line in sys.stdin:
        print(json.dumps(answer(board, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

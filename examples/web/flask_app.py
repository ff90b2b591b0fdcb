"""Flask: post a job, and ask what has become of it.

flask --app flask_app run
jobboard worker flask_app:board
"""

from __future__ import annotations

from typing import Any

from flask import Flask, request
from jobboard import ArgumentError, Board, JobFailed, JobUnknown

board = Board("web")
app = Flask(__name__)


@board.task(retries=3, backoff=("1s", "1m"), timeout="1m")
def thumbnail(url: str, width: int = 100) -> str:
    if not url.endswith(".png"):
        raise ValueError(f"{url} is no picture")
    return f"{url} at {width}"


@app.post("/thumbnails")
def start() -> tuple[dict[str, Any], int]:
    try:
        return {"id": thumbnail.post(**request.get_json())}, 202
    except ArgumentError as error:
        return {"error": str(error)}, 400


@app.get("/thumbnails/<id>")
def look(id: str) -> tuple[dict[str, Any], int]:
    try:
        return {"state": "complete", "result": thumbnail.result(id, timeout="0s")}, 200
    except TimeoutError:
        return {"state": "pending"}, 200
    except JobFailed as error:
        return {"state": error.state, "error": str(error)}, 200
    except JobUnknown:
        return {"error": "no such thumbnail"}, 404

"""Whether a worker is well, for what watches over processes: a port that answers, a file that is touched."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .engine import Engine

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger("jobboard.worker")
EVERY = 1.0
"""Seconds between two touches of the file."""


class Health:
    """`/live` answers 200 while the worker's threads run, and not all places are held by jobs that do not
    stop. `/ready` does while it also hears from the server and is not about to stop; else 503. The file is
    touched while the worker is ready, and removed at its end.

    A server that is away makes a worker not ready, and keeps it alive: to start it again would not help. Over
    shards one that answers is enough.
    """

    def __init__(self, engine: Engine, threads: list[threading.Thread]) -> None:
        self.engine, self.threads = engine, threads
        port, file = engine.options.health_port, engine.options.health_file
        self.file = None if file is None else Path(file)
        self.patience = (engine.longest + engine.board.block) / 1000
        """Seconds that the server may be silent: in this time there is a heartbeat or the end of a claim."""
        self.closed = threading.Event()
        self.touching: threading.Thread | None = None
        self.http: ThreadingHTTPServer | None = None
        if port is not None:
            from http.server import ThreadingHTTPServer  # takes a while, and few have probes

            host, _, number = port.rpartition(":")
            self.http = ThreadingHTTPServer((host, int(number)), self._handler())
            self.http.daemon_threads = True

    @property
    def port(self) -> int | None:
        return None if self.http is None else int(self.http.server_address[1])

    def start(self) -> None:
        if self.http is not None:
            threading.Thread(target=self.http.serve_forever, name="jobboard-health", daemon=True).start()
            log.info("%s tells of its health on port %d: /live, /ready", self.engine.name, self.port)
        if self.file is not None:
            self.touching = threading.Thread(target=self._touch, name="jobboard-health-file", daemon=True)
            self.touching.start()

    def close(self) -> None:
        self.closed.set()
        if self.http is not None:
            self.http.shutdown()
            self.http.server_close()
        if self.file is not None and self.touching is not None:
            self.touching.join()
            with contextlib.suppress(OSError):
                self.file.unlink()

    @property
    def live(self) -> bool:
        engine = self.engine
        return engine.stopping or not engine.all_stuck and all(one.is_alive() for one in self.threads)

    @property
    def ready(self) -> bool:
        heard = self.engine.heard
        silent = time.monotonic() - heard if heard is not None else float("inf")
        return self.live and not self.engine.stopping and silent <= self.patience

    def _touch(self) -> None:
        assert self.file is not None
        while not self.closed.is_set():
            if self.ready:
                try:
                    self.file.touch()
                except OSError as error:
                    log.error("the health file cannot be written: %s", error)
                    return
            self.closed.wait(EVERY)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        from http.server import BaseHTTPRequestHandler

        health = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers = {"/live": health.live, "/ready": health.ready}
                well = answers.get(self.path)
                about = {
                    "worker": health.engine.name,
                    "running": health.engine.busy,
                    "stuck": len(health.engine.stuck()),
                    "done": health.engine.done,
                }
                body = json.dumps({"well": bool(well), **about}).encode()
                self.send_response(404 if well is None else 200 if well else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: Any) -> None:
                """Probes are no news."""

        return Handler

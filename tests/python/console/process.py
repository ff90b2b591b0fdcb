"""A console of the tests' own: the build for tests, on a free port of this machine."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import urllib.parse
from pathlib import Path
from typing import NamedTuple

from harness.server import ROOT

BINARY = Path(os.environ.get("JOBBOARD_CONSOLE_FILE", ROOT / "target" / "checked" / "jobboard-console"))


class Answer(NamedTuple):
    """What came back over plain HTTP."""

    status: int
    headers: http.client.HTTPMessage
    body: str

    @property
    def cookie(self) -> str:
        """The session cookie that was set, as one sends it back."""
        return (self.headers.get("Set-Cookie") or "").split(";")[0]


class Console:
    """`Console("redis://127.0.0.1:6379", "--write")`: running and listening when constructed."""

    def __init__(self, redis_url: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
        assert BINARY.exists(), f"{BINARY} is missing: cargo build -p jobboard-console"
        clean = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL",)}
        port = [] if "--port" in arguments else ["--port", "0"]
        self.process = subprocess.Popen(
            [str(BINARY), "--redis", redis_url, *port, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**clean, **(environment or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"http://(\S+):(\d+)/", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"the console did not start: {line}{self.process.communicate()[1]}")
        self.port = int(found.group(2))
        self.url = f"http://127.0.0.1:{self.port}"

    def at(self, path: str, **query: object) -> str:
        """An address: `at("/job", b="board", id="a")`; a list gives its field more than once."""
        if not query:
            return self.url + path
        pairs = urllib.parse.urlencode(query, doseq=True, quote_via=urllib.parse.quote)
        return f"{self.url}{path}?{pairs}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request as any program could send it; redirects are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            text = urllib.parse.urlencode(body) if body is not None else None
            connection.request(method, path.replace(self.url, ""), text, headers or {})
            reply = connection.getresponse()
            return Answer(reply.status, reply.msg, reply.read().decode("utf-8", "replace"))
        finally:
            connection.close()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> str:
        """Ends it and returns what it wrote to stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]

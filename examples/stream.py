"""A web page shows what a job writes while it runs: a language model's words, say, as they come.

    python examples/stream.py [--port 6379]

It starts a worker, whose "model" here only repeats a poem, and a web server. `GET /?id=…` shows a page,
`GET /output?id=…` streams the output of the job as server-sent events. When the connection breaks, the
browser comes back with the number of the last event, and the stream continues there. An attempt that fails
is followed by another one, which writes anew: the page clears. Post one yourself with

    jobboard post poems 'a word' --name poem
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jobboard

POEM = "Two roads diverged in a yellow wood, and sorry I could not travel both"
PAGE = """<!doctype html><meta charset="utf-8"><title>Output</title><pre id="text"></pre>
<script>
const text = document.getElementById("text");
const events = new EventSource("/output" + location.search);
events.addEventListener("chunk", (event) => {
  const chunk = JSON.parse(event.data);
  if (chunk.anew) text.textContent = "";
  if (chunk.missed) text.textContent += "…";
  text.textContent += chunk.text;
});
events.addEventListener("end", () => events.close());
</script>"""


def board_at(port: int | None) -> jobboard.Board:
    board = jobboard.Board("poems", None if port is None else f"redis://127.0.0.1:{port}")

    @board.handler("poem")
    def poem(context: jobboard.Context, payload: str) -> int:
        """Writes word by word. The first attempt breaks off, as calls of models do."""
        words = POEM.split()
        for at, word in enumerate(words):
            if context.attempt == 1 and at == len(words) // 2:
                raise jobboard.Retry("it broke off", delay="0s")
            context.output(f"{word} ")
            context.flush()
        return len(words)

    return board


class Pages(BaseHTTPRequestHandler):
    """One request."""

    board: jobboard.Board

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path != "/output":
            return self.answer("text/html; charset=utf-8", PAGE.encode())
        id = parse_qs(address.query).get("id", [""])[0]
        since = int(self.headers.get("Last-Event-ID") or 0)
        if not id or self.board.get(id, fields=["id"]) is None:
            return self.answer("text/plain", b"no such job", 404)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        try:
            for chunk in self.board.output(id, since=since):
                told = {"text": chunk.text, "anew": chunk.anew, "missed": chunk.missed}
                self.say("chunk", json.dumps(told), chunk.next)
            self.say("end", json.dumps(self.board.state(id)))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed

    def say(self, event: str, data: str, number: int | None = None) -> None:
        head = "" if number is None else f"id: {number}\n"
        self.wfile.write(f"{head}event: {event}\ndata: {data}\n\n".encode())

    def answer(self, kind: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)"
    )
    parser.add_argument("--web", type=int, default=8000, help="the port of the web server (0: any)")
    arguments = parser.parse_args()
    board = board_at(arguments.port)
    threading.Thread(target=jobboard.Worker(board).run, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", arguments.web), type("", (Pages,), {"board": board}))
    id = board.post("a word", name="poem")
    print(f"http://127.0.0.1:{server.server_port}/?id={id}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

"""Serves the numbers of boards to Prometheus: an HTTP server, one scrape is one JOB.METRICS.

    python examples/exporter.py --redis redis://metrics:password@127.0.0.1:6379 --listen 9199 jobs mails

Without boards it serves all that it finds, with one SCAN of the keys of type jobboard1 for each scrape; on
a server with many other keys, name them. `grafana-dashboard.json` beside this file reads what comes out.

The address is redis-py's: `rediss://…?ssl_ca_certs=/etc/ssl/jobs-ca.pem` is TLS. Its user needs +job.metrics,
+scan, and to read the boards (%R~…), as the role `metrics` of redis.conf.

On loopback it answers this machine alone: what a proxy passes on gets 403, unless there is a token. A proxy
that writes `Host: 127.0.0.1` and no header of its own cannot be told from this machine. With another --bind,
whoever reaches the port reads the numbers: give it a token.
"""

from __future__ import annotations

import argparse
import hmac
import ipaddress
import os
from collections.abc import Sequence
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

try:
    import redis
except ImportError:
    raise SystemExit(
        "jobboard-exporter: Python's package redis is missing: apt-get install python3-redis, "
        "or pip install redis"
    ) from None

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PATIENCE = 5
"""Seconds for a reply, unless the address says `?socket_timeout=`. Without an end, each scrape of a server
that hangs would leave a thread and a connection behind."""
MOST = 1000
"""No more boards are asked for in one scrape."""


def found(client: redis.Redis) -> list[bytes]:
    """The boards of the database, sorted."""
    names: list[bytes] = []
    for name in client.scan_iter(count=1000, _type="jobboard1"):
        names.append(name)
        if len(names) == MOST:
            break
    return sorted(names)


def is_loopback(host: str) -> bool:
    """Whether it is this machine's own name for itself."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_forwarded(version: str, headers: Message) -> bool:
    """Whether a proxy has passed the request on, as far as it says so: the console goes by the same signs."""
    signs = ("forwarded", "via", "x-real-ip")
    if version == "HTTP/1.0" or any(
        name.lower() in signs or name.lower().startswith("x-forwarded-") for name in headers
    ):
        return True
    host = headers.get("Host", "localhost")
    with_port = host.count(":") == 1 or "]:" in host
    return not is_loopback(host.rpartition(":")[0] if with_port else host)


def handler(
    client: redis.Redis, boards: Sequence[str | bytes], token: str | None, *, is_local: bool
) -> type[BaseHTTPRequestHandler]:
    """Answers GET /metrics to those who know the token; 503 while the server cannot be asked.

    `is_local`: without a token it is for this machine alone, and not for those whom a proxy passes on.
    """
    wanted = None if token is None else f"Bearer {token}".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                return self.send_error(404)
            sent = self.headers.get("Authorization", "").encode("latin-1", "replace")
            if wanted is not None and not hmac.compare_digest(sent, wanted):
                return self.send_error(401)
            if wanted is None and is_local and is_forwarded(self.request_version, self.headers):
                return self.send_error(403, explain="Others can reach /metrics: it needs --metrics-token.")
            try:
                text = client.execute_command("JOB.METRICS", *(boards or found(client)))
            except redis.RedisError as error:
                return self.send_error(503, explain=str(error))
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def serve(
    client: redis.Redis, boards: Sequence[str | bytes], host: str, port: int, token: str | None = None
) -> ThreadingHTTPServer:
    """A server that listens there; port 0 takes a free one."""
    asked = handler(client, boards, token, is_local=is_loopback(host))
    return ThreadingHTTPServer((host, port), asked)


def main() -> None:
    url = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379"
    token = os.environ.get("JOBBOARD_METRICS_TOKEN") or None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--redis",
        default=url,
        metavar="URL",
        help="the server; so that nobody sees the password, in $REDIS_URL (default: redis://127.0.0.1:6379)",
    )
    parser.add_argument("--listen", type=int, default=9199, metavar="PORT", help="(default: 9199)")
    parser.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="(default: 127.0.0.1)")
    parser.add_argument(
        "--metrics-token",
        default=token,
        metavar="TOKEN",
        help="what a scraper has to send as its bearer token; also in $JOBBOARD_METRICS_TOKEN. Without one, "
        "what a proxy passes on to loopback gets 403",
    )
    parser.add_argument("board", nargs="*", help="boards; without any, all that are found")
    args = parser.parse_args()
    try:
        client = redis.Redis.from_url(args.redis, socket_timeout=PATIENCE)
    except ValueError as error:
        parser.error(f"--redis: {error}")
    with serve(client, args.board, args.bind, args.listen, args.metrics_token) as server:
        print(f"http://{args.bind}:{server.server_address[1]}/metrics", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

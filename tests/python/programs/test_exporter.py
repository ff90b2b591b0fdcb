"""The exporter, as a program: address, user, password, token, TLS."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.server import ROOT, free_port

[ROLE] = re.findall(r"^# (user metrics on .+)$", (ROOT / "redis.conf").read_text(), re.MULTILINE)
USER = ROLE.replace("choose-a-password", "a-password").replace("jobs:*", "*")


@contextlib.contextmanager
def exporter(url: str, *words: str, **environment: str) -> Iterator[str]:
    """Its address while it runs."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "exporter.py"), "--listen", "0", *words],
        env={**os.environ, "REDIS_URL": url, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def status(address: str, token: str | None = None, header: str | None = None) -> int:
    request = urllib.request.Request(address)
    if header is not None:
        request.add_header(*header.split(": "))
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert b'board="jobs"' in reply.read()
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_user_with_a_password(fresh_server) -> None:
    server = fresh_server(config=[USER, "user default on >another ~* &* +@all"], wait=False)
    connect = server.connect
    server.connect = lambda **options: connect(**{"password": "another", **options})
    server.wait_ready()
    server.board("jobs").post("x")
    with exporter(f"redis://metrics:a-password@127.0.0.1:{server.port}") as address:
        assert status(address) == 200
    with exporter(f"redis://metrics:wrong@127.0.0.1:{server.port}") as address:
        assert status(address) == 503


def test_a_token_keeps_others_out(server) -> None:
    server.board("jobs").post("x")
    url = f"redis://127.0.0.1:{server.port}"
    with exporter(url, JOBBOARD_METRICS_TOKEN="a token") as address:
        assert [status(address), status(address, "wrong"), status(address, "a token")] == [401, 401, 200]
    with exporter(url, "--metrics-token", "other", JOBBOARD_METRICS_TOKEN="a token") as address:
        assert status(address, "other") == 200


@pytest.mark.parametrize(
    "header",
    ["Forwarded: for=10.0.0.9", "Via: 1.1 proxy", "X-Real-IP: 10.0.0.9", "X-Forwarded-For: 10.0.0.9"]
    + ["Host: jobs.example.com", "Host: 10.0.0.1:9199"],
)
def test_a_proxy_passes_nobody_on_without_a_token(server, header: str) -> None:
    """As the console does: who started it on loopback meant this machine alone."""
    server.board("jobs").post("x")
    url = f"redis://127.0.0.1:{server.port}"
    with exporter(url) as address:
        assert status(address) == 200 and status(address, header=header) == 403
    with exporter(url, "--metrics-token", "a token") as address:
        assert [status(address, "a token", header), status(address, header=header)] == [200, 401]


def test_loopback_is_told_by_its_names(server) -> None:
    server.board("jobs").post("x")
    with exporter(f"redis://127.0.0.1:{server.port}") as address:
        names = ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9199", "[::1]:9199", "::1"]
        assert {status(address, header=f"Host: {name}") for name in names} == {200}
        port = int(address.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b" 403 " in connection.recv(100)


def test_whoever_binds_it_for_others_needs_no_proxys_rule(server) -> None:
    """They have opened it themselves, as before."""
    server.board("jobs").post("x")
    with exporter(f"redis://127.0.0.1:{server.port}", "--bind", "0.0.0.0") as address:
        assert status(address.replace("0.0.0.0", "127.0.0.1"), header="Host: jobs.example.com") == 200


def test_a_server_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    """As with Debian's redis-py 4, which waits for ever by itself."""
    (tmp_path / "sitecustomize.py").write_text(
        "import redis\n"
        "given = redis.Redis.from_url\n"
        "old = {'socket_timeout': None, 'retry': None}\n"
        "redis.Redis.from_url = lambda url, **named: given(url, **{**old, **named})\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}?protocol=2"
        with exporter(url, PYTHONPATH=str(tmp_path)) as address:
            assert status(address) == 503
        with exporter(f"{url}&socket_timeout=0.1", PYTHONPATH=str(tmp_path)) as address:
            assert status(address) == 503


def test_tls(fresh_server, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed: no certificate can be made")
    key, certificate, port = tmp_path / "key.pem", tmp_path / "certificate.pem", free_port()
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {"tls-cert-file": certificate, "tls-key-file": key, "tls-ca-cert-file": certificate}
    lines = [f"{name} {path}" for name, path in files.items()]
    server = fresh_server(kind="redis70", config=[f"tls-port {port}", "tls-auth-clients no", *lines])
    server.board("jobs").post("x")
    with exporter(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}") as address:
        assert status(address) == 200
    with exporter(f"rediss://127.0.0.1:{port}") as address:  # a certificate that it does not know
        assert status(address) == 503


def test_an_address_that_is_none(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "examples" / "exporter.py"), "--redis", "http://127.0.0.1"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and "--redis: " in done.stderr


def test_without_the_package_redis_it_says_what_to_install() -> None:
    """The packages of Debian and Fedora do not depend on it: the module needs none."""
    code = "import runpy, sys; sys.modules['redis'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    words = [sys.executable, "-c", code, str(ROOT / "examples" / "exporter.py")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "apt-get install python3-redis" in done.stderr
    assert "Traceback" not in done.stderr

"""What errors of the connection say: what is true of this server, and nothing else."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from harness import wait_until
from harness.server import free_port
from jobboard import Board, connecting
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers import NAME, Sentinel

from .test_hints import errors  # noqa: F401

STARTS = "`jobboard serve` starts one"


def asked(errors, url: str, *words: str) -> str:  # noqa: F811
    return errors("list", "board", "--url", url, *words, status=1)


@pytest.fixture
def tls(fresh_server, tmp_path: Path) -> int:
    """The port of a server with a certificate that nobody has signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    key, certificate, port = tmp_path / "key.pem", tmp_path / "certificate.pem", free_port()
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost".split()
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {"tls-cert-file": certificate, "tls-key-file": key, "tls-ca-cert-file": certificate}
    lines = [f"{name} {path}" for name, path in files.items()]
    fresh_server(kind="redis70", config=[f"tls-port {port}", "tls-auth-clients no", *lines])
    return port


def test_a_certificate_that_nobody_vouches_for(errors, tls: int) -> None:  # noqa: F811
    said = asked(errors, f"rediss://127.0.0.1:{tls}")
    assert "CERTIFICATE_VERIFY_FAILED" in said and "?ssl_ca_certs=FILE" in said and "in --url" in said
    assert STARTS not in said


def test_tls_to_a_port_without(errors) -> None:  # noqa: F811
    """One that answers in plain text."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                with one:
                    one.recv(10_000)
                    one.sendall(b"-ERR this is no command\r\n")

        threading.Thread(target=answer, daemon=True).start()
        said = asked(errors, f"rediss://127.0.0.1:{listener.getsockname()[1]}")
    assert "redis:// in --url" in said and STARTS not in said


def test_a_primary_that_is_dead_behind_its_sentinels(errors, fresh_server, kind) -> None:  # noqa: F811
    """Nothing is started by hand there: the Sentinels promote a replica."""
    server = fresh_server()
    # It would say for less than a second that a dead one is there.
    sentinel = Sentinel(kind, server.port, [f"sentinel down-after-milliseconds {NAME} 600000"])
    try:
        wait_until(lambda: sentinel.primary() == server.port, what="it knows the primary")
        url = f"sentinel://127.0.0.1:{sentinel.port}/{NAME}"
        assert errors("list", "board", "--url", url, status=0) is not None
        server.kill()
        said = asked(errors, url)
        assert "the Sentinels of --url say that the primary is there" in said and STARTS not in said
        with pytest.raises(redis.ConnectionError, match="the Sentinels of the board's URL|of .JOBBOARD_URL"):
            Board("board", url).post(1)
    finally:
        sentinel.close()


def test_sentinels_that_are_not_there(errors) -> None:  # noqa: F811
    said = asked(errors, "sentinel://127.0.0.1:1/shop")
    assert "No master found for 'shop': no Sentinel of --url answers" in said and "redis.client" not in said


def test_a_cluster_whose_nodes_are_dead(errors, cluster) -> None:  # noqa: F811
    url = f"redis://127.0.0.1:{cluster.primaries[0].port}"
    client = connecting.connect_cluster(url, name="--url")
    board = Board("board", client)
    board.post(1)
    for node in cluster.primaries:
        node.kill()
    with pytest.raises((redis.RedisError, redis.exceptions.RedisClusterException)) as caught:
        board.post(1)
    assert STARTS not in str(caught.value)
    one = redis.ConnectionError("Error 111 connecting to 10.0.0.2:7001. Connection refused.")
    assert "it is a node of the cluster of --url" in str(connecting.explained_of(one, client))
    said = asked(errors, url, "--cluster")
    assert "name in --url a node that is up" in said and STARTS not in said


def test_a_server_that_has_answered_wants_no_tls(server) -> None:
    """A connection breaks at any time: a restart, CLIENT KILL, a proxy."""
    url = f"redis://127.0.0.1:{server.port}?socket_timeout=200"
    client = connecting.connect(url, name="--url")
    client.set_retry(Retry(NoBackoff(), 0))
    board, other = Board("board", client), server.client()
    with ThreadPoolExecutor(1) as threads:
        claim = threads.submit(board.claim, "w", block="1m")
        wait_until(lambda: other.info("clients")["blocked_clients"] == 1)
        other.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(redis.ConnectionError, match="Connection closed by server") as caught:
            claim.result()
    assert "TLS" not in str(caught.value)

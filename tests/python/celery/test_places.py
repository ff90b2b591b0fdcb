"""The transport and the result backend over TLS, and over a primary that Sentinels watch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain
from celery.contrib.testing.worker import start_worker
from harness import Server
from harness.server import free_port
from sentinels import Watched

WITHIN = 120


def add(a: int, b: int) -> int:
    return a + b


def application(url: str, **settings: Any) -> Any:
    app = Celery("places", broker=url, backend=url, set_as_current=False)
    app.conf.update(broker_connection_retry_on_startup=True, **settings)
    app.task(name="add", shared=False)(add)
    app.finalize()
    return app


def works(app: Any) -> None:
    """Tasks, their results, an ETA, and remote control."""
    task = app.tasks["add"]
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=WITHIN):
        assert task.delay(1, 2).get(timeout=WITHIN) == 3
        assert chain(task.s(1, 1), task.s(2)).delay().get(timeout=WITHIN) == 4
        assert task.apply_async((3, 4), countdown=1).get(timeout=WITHIN) == 7
        assert len(app.control.ping(timeout=20, limit=1)) == 1


@pytest.fixture
def encrypted(fresh_server: Callable[..., Server], tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of a server with TLS, and the file of its certificate."""
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out ca -days 2 "
        "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:false",
        shell=True, check=True, cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    port = free_port()
    tls = [f"tls-cert-file {tmp_path}/ca", f"tls-key-file {tmp_path}/key", f"tls-ca-cert-file {tmp_path}/ca"]
    fresh_server(kind="redis70", config=[f"tls-port {port}", *tls, "tls-auth-clients no"])
    yield port, f"{tmp_path}/ca"


def test_tls_by_the_url(encrypted: tuple[int, str]):
    port, ca = encrypted
    works(application(f"jobboard+rediss://127.0.0.1:{port}/0/board?ssl_ca_certs={ca}"))


def test_tls_by_the_settings(encrypted: tuple[int, str]):
    port, ca = encrypted
    own = {"ssl_ca_certs": ca, "ssl_cert_reqs": "required"}
    url = f"jobboard://127.0.0.1:{port}/0/board"
    works(application(url, broker_use_ssl=own, redis_backend_use_ssl=own))


def test_a_certificate_that_nobody_vouches_for_is_refused(encrypted: tuple[int, str]):
    port, _ = encrypted
    app = application(f"jobboard+rediss://127.0.0.1:{port}/0/board")
    with pytest.raises(app.connection().connection_errors, match=r"(?i)certificate"):
        app.connection().connect()


def test_a_primary_that_sentinels_watch(watched: Watched):
    works(application(f"jobboard+{watched.url}/0/board"))


def test_a_worker_follows_a_failover_of_sentinels(watched: Watched):
    """Tasks that the replica had, one with a time among them, and later ones are done, each once."""
    app = application(f"jobboard+{watched.url}/0/board?socket_timeout=1")
    done: list[int] = []

    # A shared one of a test before, in the same process, would be taken in its place.
    @app.task(name="note", shared=False)
    def note(number: int) -> int:
        done.append(number)
        return number

    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=WITHIN):
        assert note.delay(0).get(timeout=WITHIN) == 0
        later = note.apply_async((1,), countdown=15)
        watched.servers[1].wait_synced(watched.servers[0])
        watched.fail_over("kill")
        assert later.get(timeout=WITHIN) == 1
        assert note.delay(2).get(timeout=WITHIN) == 2
    assert done == [0, 1, 2]


def test_what_is_wrong_with_the_url_is_said_in_its_words(server: Server):
    place = f"127.0.0.1:{server.port}"
    for url, says in [
        (f"jobboard://nobody:wrong@{place}/0", "jobboard://user:password@host:port"),
        (f"jobboard://127.0.0.1:{free_port()}/0", "the URL of `broker` says where the server is"),
    ]:
        with pytest.raises(Exception) as caught:
            application(url).connection().transport.establish_connection()
        assert says in str(caught.value) and "$JOBBOARD_URL" not in str(caught.value)

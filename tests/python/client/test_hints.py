"""What is written wrong is answered with what may be meant."""

from __future__ import annotations

import socket
import threading

import pytest
from jobboard import Board
from jobboard.cli import main
from jobboard.errors import BoardError


@pytest.fixture
def errors(server, monkeypatch, capsys):
    """errors(words …): what `jobboard …` says to a command that is written wrong."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")

    def errors(*words: str, status: int = 2) -> str:
        try:
            found = main(words)
        except SystemExit as end:
            found = end.code
        assert found == status
        return capsys.readouterr().err

    return errors


def test_a_wrong_option_is_answered_in_two_lines(errors) -> None:
    said = errors("post", "board", "1", "--prioritty", "5")
    assert said.splitlines() == [
        "jobboard post: unrecognized arguments: --prioritty 5 (--prioritty: did you mean --priority?)",
        "`jobboard post --help` lists what there is",
    ]


def test_options_are_written_whole(errors) -> None:
    assert "did you mean --threads?" in errors("worker", "app:board", "--thread", "2")


def test_a_revision_is_no_time(errors) -> None:
    said = errors("list", "board", "--since", "2h")
    assert "'2h' is no revision" in said and "--posted 2h - or --ended 2h -" in said


def test_a_node_of_a_cluster_says_so(errors, monkeypatch) -> None:
    def moved(self, request):
        raise BoardError("7365 10.0.0.2:6379", "MOVED")

    monkeypatch.setattr(Board, "send", moved)
    assert "say --cluster" in errors("list", "board", status=1)


def test_a_server_that_ends_each_connection_may_want_tls(errors) -> None:
    """As a port of TLS does, which takes the first command for no greeting of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                one.recv(10)
                one.close()

        threading.Thread(target=refuse, daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        assert "rediss:// in --url" in errors("list", "board", "--url", url, status=1)


def test_a_field_of_a_record_and_an_option_of_a_post(jobs) -> None:
    job = jobs.get(jobs.post(1))
    with pytest.raises(AttributeError, match="Job: the record .* 'staet'; did you mean 'state'"):
        job.staet  # noqa: B018
    with pytest.raises(AttributeError, match="the record of a job has no field 'colour'; there are after, "):
        job.colour  # noqa: B018
    with pytest.raises(TypeError, match="unknown option 'dealy'; did you mean 'delay'"):
        jobs.post(1, dealy="5s")


def test_bytes_that_are_no_json(jobs) -> None:
    id = Board("board", jobs.client, codec="raw").post(b"\xffn\x00o")
    with pytest.raises(ValueError, match="no JSON: it is no text in UTF-8; payload_bytes"):
        jobs.get(id).payload  # noqa: B018


@pytest.mark.parametrize(
    "name, says",
    [
        ("countdown", r"write delay='10s'$"),
        ("eta", r"write at=…, a datetime with a zone$"),
        ("attempts", r"write retries, the tries after the first: attempts=3 is retries=2$"),
        ("max_retries", r"write retries=3$"),
        ("job_id", r"write id='…'$"),
        ("jobId", r"write id='…'$"),
        ("removeOnComplete", r"write retain='1h', how long the record stays once it is complete"),
        ("time_limit", r"write timeout='5m'$"),
    ],
)
def test_a_word_of_another_library_is_refused_with_ours(jobs, name, says) -> None:
    with pytest.raises(TypeError, match=f"unknown option '{name}'; {says}"):
        jobs.post(1, **{name: 3})
    with pytest.raises(TypeError, match=f"unknown option '{name}'; {says}"):
        jobs.schedule_set("s", 1, every="1h", **{name: 3})
    with pytest.raises(TypeError, match=f"a task has no option '{name}'; {says}"):
        jobs.task("work", **{name: 3})(lambda: None)
    assert not jobs.info()

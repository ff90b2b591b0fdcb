"""`jobboard post --lines`: what it checks first, what it says when it breaks off, and how it goes on."""

from __future__ import annotations

import json

import pytest
from jobboard.board import Board
from jobboard.cli import main
from proxy import Proxy


@pytest.fixture
def post(server, capsys, tmp_path):
    """post(lines, words …, port=…) -> (status, output, errors)"""

    def post(lines: list[str], *words: str, port: int | None = None):
        file = tmp_path / "lines"
        file.write_text("".join(f"{line}\n" for line in lines))
        url = f"redis://127.0.0.1:{port or server.port}"
        status = main(["post", "board", "--lines", str(file), "--url", url, *words])
        return (status, *capsys.readouterr())

    return post


LINES = [*map(str, range(2500))]


def test_a_bad_line_is_found_before_the_first_post(post, jobs) -> None:
    lines = [*LINES]
    lines[1700] = "{"
    status, out, errors = post(lines)
    assert (status, out) == (2, "") and "line 1701: the payload is no JSON" in errors
    lines[1700] = "NaN"
    status, out, errors = post(lines)
    assert (status, out) == (2, "") and "line 1701: no JSON: it has neither NaN nor infinity" in errors
    assert jobs.info() is None


def test_a_refusal_in_between_says_where_to_go_on(post, jobs) -> None:
    jobs.settings_set({"max-jobs": 1200})
    status, out, errors = post(LINES)
    assert (status, out) == (1, "")
    assert "posted 1000 of 2500 lines; continue with --from-line 1001" in errors and "max-jobs" in errors
    jobs.settings_set({"max-jobs": 10_000})
    assert post(LINES, "--from-line", "1001")[:2] == (0, "posted 1500\n")
    assert sorted(job.payload for job in jobs.list(fields=["payload"])) == [*range(2500)]


def test_with_ids_a_repetition_posts_no_job_twice(post, jobs) -> None:
    jobs.settings_set({"max-jobs": 1200})
    status, _, errors = post(LINES, "--id-prefix", "import-")
    assert status == 1
    assert "posted 1000 of 2500 lines; repeat it as it was, or with --from-line 1001" in errors
    jobs.settings_set({"max-jobs": 10_000})
    said = "posted 1500, 1000 were there already\n"
    assert post(LINES, "--id-prefix", "import-")[:2] == (0, said)
    assert jobs.count() == 2500
    assert (jobs.get("import-1").payload, jobs.get("import-2500").payload) == (0, 2499)
    assert post(LINES, "--id-prefix", "import-", "--from-line", "2500")[1].startswith("posted 0, 1 were")


def test_a_connection_that_is_lost_in_between(post, jobs, server, monkeypatch) -> None:
    """The server does the second command, and its answer is lost: nobody can know that, but ids do."""
    proxy, plain = Proxy(server.port), Board.send

    def losing(board, request):
        answer = plain(board, request)
        if request.words[0] == "JOB.MPOST" and jobs.count() > 1000:
            proxy.refusing = True
            proxy.cut()
            answer = plain(board, request)
        return answer

    monkeypatch.setattr(Board, "send", losing)
    try:
        status, out, errors = post(LINES, port=proxy.port)
        assert (status, out) == (1, "")
        assert "posted 1000 of 2500 lines; the answer for those from line 1001 on was lost" in errors
        assert jobs.count() == 2000
        jobs.client.flushall()
        proxy.refusing = False
        assert post(LINES, "--id-prefix", "a-", port=proxy.port)[0] == 1
    finally:
        monkeypatch.undo()
        proxy.close()
    assert post(LINES, "--id-prefix", "a-")[:2] == (0, "posted 500, 2000 were there already\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from-line", "4"], "--from-line 4: "),
        (["--id-prefix", ""], "--id-prefix is a text that is not empty"),
        (["--id", "a"], "--id and --wait go with a single payload"),
    ],
)
def test_what_is_refused(post, jobs, words, says) -> None:
    status, _, errors = post(["1", "2", "3"], *words)
    assert status == 2 and says in errors and jobs.info() is None


def test_a_server_that_is_away_has_got_nothing(post, jobs) -> None:
    status, _, errors = post(["1"], port=1)
    assert status == 1 and "posted" not in errors


def test_lines_are_those_of_an_editor(post, jobs) -> None:
    """JSON may have other separators of lines within its texts."""
    payloads = ["one\u2028line", "two\x85"]
    lines = [json.dumps(one, ensure_ascii=False) + "\r" for one in payloads]
    assert post(lines)[:2] == (0, "posted 2\n")
    assert sorted(job.payload for job in jobs.list(fields=["payload"])) == payloads


def test_from_line_goes_with_lines(server, capsys) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    assert main(["post", "board", "1", "--from-line", "2", "--url", url]) == 2
    assert "go with --lines" in capsys.readouterr().err

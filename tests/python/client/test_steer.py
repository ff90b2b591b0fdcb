"""The command line for those who operate boards: settings, schedules, statistics, workers, boards."""

from __future__ import annotations

import json

import pytest
from jobboard import Board
from jobboard.cli import main


@pytest.fixture
def cli(server, monkeypatch, capsys):
    """Calls `jobboard …` and returns (status, the cells of each line of output, errors)."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")

    def run(*words: str) -> tuple[int, list[list[str]], str]:
        status = main(words)
        out, err = capsys.readouterr()
        return status, [line.split() for line in out.splitlines()], err

    return run


def test_settings(cli, jobs) -> None:
    status, found, _ = cli("settings", "board", "lease=1m", "retain-complete=-1", "--queue", "q")
    assert status == 1, "not all of these are of a queue"
    assert jobs.settings_get("lease")["lease"] == (30_000, "default"), "nothing was set"
    status, found, _ = cli("settings", "board", "lease=1h30m", "events=posted,failed", "retain-complete=-1")
    assert (status, found) == (
        0,
        [
            ["SETTING", "VALUE", "FROM"],
            ["lease", "1.5h", "board"],
            ["events", "129", "board"],
            ["retain-complete", "-1", "board"],
        ],
    )
    for limit in ("api", "acme"):
        assert cli("settings", "board", "concurrency=3", "--limit", limit)[1][1] == [
            "concurrency",
            "3",
            "limit",
        ]
    assert cli("settings", "board", "limits=api,acme", "rate=5", "--queue", "q")[::2] == (0, "")
    assert cli("settings", "board", "limits", "--queue", "q")[1][1:] == [["limits", "acme,api", "queue"]]
    assert cli("settings", "board", "limits=", "--queue", "q")[1][1:] == [["limits", "default"]]
    assert len(cli("settings", "board")[1]) > 30
    assert cli("settings", "board", "lease", "--reset")[1][1:] == [["lease", "30.0s", "default"]]
    assert cli("settings", "board", "--reset")[0] == 0
    assert jobs.settings_get("events")["events"].source == "default"
    for words, said in (
        (["lease=5"], "lease is text with a unit"),
        (["lease=1m", "rate"], "either NAME to show, or NAME=VALUE to set"),
        (["lease=1m", "--reset"], "--reset goes with names alone"),
        (["leese=1m"], "unknown setting 'leese'"),
    ):
        status, _, errors = cli("settings", "board", *words)
        assert status == (1 if words == ["leese=1m"] else 2) and said in errors
    main(["settings", "board", "lease", "--json"])


def test_settings_as_json(jobs, server, capsys) -> None:
    assert main(["settings", "board", "lease", "--json", "--url", f"redis://127.0.0.1:{server.port}"]) == 0
    assert json.loads(capsys.readouterr().out) == {"lease": {"value": 30_000, "source": "default"}}


def test_schedules(cli, jobs) -> None:
    nightly = ["--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--name", "report", "--queue", "night"]
    assert cli("schedule", "set", "board", "nightly", '{"full": true}', *nightly)[0] == 0
    assert cli("schedule", "set", "board", "hourly", "--every", "1h30m")[0] == 0
    _, found, _ = cli("schedules", "board")
    assert found[1][:2] == ["hourly", "active"] and found[1][2:4] == ["every", "1h30m"]
    assert found[2][:9] == ["nightly", "active", *"0 2 * * *".split(), "Europe/Berlin", "report"]
    assert jobs.schedule_get("nightly")["payload"] == {"full": True}
    assert cli("schedule", "set", "board", "nightly", "--queue", "other")[0] == 0
    row = jobs.schedule_get("nightly")
    assert (row["payload"], row["queue"], row["cron"]) == ({"full": True}, "other", "0 2 * * *"), (
        "the rest stays"
    )
    status, [[id]], _ = cli("schedule", "run", "board", "nightly")
    assert status == 0 and jobs.get(id).payload == {"full": True}
    cli("schedule", "pause", "board", "nightly")
    assert cli("schedules", "board")[1][2][1] == "paused"
    cli("schedule", "resume", "board", "nightly")
    assert cli("schedules", "board")[1][2][1] == "active"
    jobs.schedule_set("once", 1, every="1h", overlap="skip")
    assert cli("schedule", "run", "board", "once")[0] == 0
    status, _, errors = cli("schedule", "run", "board", "once")
    assert status == 1 and "the last one has not ended" in errors
    assert cli("schedule", "delete", "board", "nightly")[0] == 0
    said = cli("schedule", "delete", "board", "nightly")[2]
    assert said.startswith("jobboard: NOSCHEDULE no such schedule 'nightly'")
    cli("schedule", "set", "board", "report", "1", "--every", "1h")
    for verb in ("run", "pause", "resume", "delete"):
        said = cli("schedule", verb, "board", "reprt")[2]
        assert said == "jobboard: NOSCHEDULE no such schedule 'reprt'; did you mean 'report'?\n"
    assert "only `schedule set` takes a payload" in cli("schedule", "pause", "board", "once", "1")[2]
    assert "is no JSON" in cli("schedule", "set", "board", "x", "{", "--every", "1h")[2]


def test_workers_and_statistics(cli, jobs, capsys) -> None:
    jobs.worker_register("w", role="mailer", meta={"host": "h"}, for_="1m")
    jobs.worker_quiet("w")
    _, found, _ = cli("workers", "board")
    assert found[0][:2] == ["WORKER", "ROLE"]
    assert found[1][:5] == ["w", "mailer", "0", "0", "quiet"] and found[1][-1] == "host=h"
    jobs.post(1, id="a", queue="mails")
    jobs.claim_id("v", "a")
    jobs.consume("v", "a")
    rows = {row[0]: row[1:] for row in cli("stats", "board")[1] if row}
    assert (rows["posted"], rows["completed"], rows["wait"][0]) == (["1"], ["1"], "1")
    rows = {row[0]: row[1:] for row in cli("stats", "board", "--queue", "other", "--day", "0")[1] if row}
    assert rows["posted"] == ["0"] and "wait" not in rows
    for what in ("stats", "workers", "schedules"):
        assert main([what, "board", "--json"]) == 0
        json.loads(capsys.readouterr().out)


def test_boards_show_pauses(cli, jobs) -> None:
    def condition() -> list[str]:
        [row] = [row for row in cli("boards")[1] if row[0] == "board"]
        return row[5:]

    for queue in "abcde":
        jobs.post(1, queue=queue)
    assert condition() == []
    for queue in "cab":
        jobs.pause(queue=queue)
    assert condition() == ["paused:", "a,", "b,", "c"]
    jobs.pause(queue="e")
    assert condition() == ["paused:", "a,", "b,", "c", "and", "1", "more"]
    jobs.pause()
    assert condition() == ["paused"]
    jobs.resume()
    jobs.pause(for_="1h")
    assert condition()[:2] == ["paused", "until"]


def test_boards(cli, jobs, server) -> None:
    jobs.post(1)
    jobs.client.set("text", 1)
    Board("a\x1b[2J", jobs.client).post(1)
    status, found, _ = cli("boards")
    assert (status, found) == (
        0,
        [
            ["BOARD", "JOBS", "READY", "CLAIMED", "FAILED"],
            ["a\\x1b[2J", "1", "1", "0", "0"],
            ["board", "1", "1", "0", "0"],
        ],
    )

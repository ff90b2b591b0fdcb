"""docs/operate/workers.md: systemd takes its unit, and its worker starts, is ready, and stops as it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from documents import ROOT, blocks
from harness import Server, wait_until
from harness.server import free_port

PAGE = (ROOT / "docs" / "operate" / "workers.md").read_text()
[UNIT] = [block.text for block in blocks(PAGE) if block.info == "systemd"]
[POD] = [yaml.safe_load(block.text)["spec"] for block in blocks(PAGE) if block.info == "yaml"]
[COMMAND] = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
APP = """
import pathlib, time
import jobboard

board = jobboard.Board("mails")


@board.task()
def hold() -> str:
    pathlib.Path("begun").touch()
    while not pathlib.Path("end").exists():
        time.sleep(0.01)
    return "done"
"""


def stop_within(words: list[str]) -> int:
    return int(words[words.index("--stop-within") + 1].rstrip("s"))


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        words = re.findall(r"^(\w+)=", UNIT, re.MULTILINE)
        assert len(words) == len(set(words)) and "[Service]" in UNIT
        return
    unit = tmp_path / "mails-worker@.service"
    unit.write_text(UNIT.replace("/srv/mails/.venv/bin/jobboard", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert str(unit) not in done.stderr, done.stderr


def test_the_system_waits_longer_than_the_worker() -> None:
    [kills] = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(kills) > stop_within(shlex.split(COMMAND))
    assert POD["terminationGracePeriodSeconds"] > stop_within(POD["containers"][0]["command"])
    [container] = re.findall(r"^    CMD (\[.*\])$", PAGE, re.MULTILINE)
    assert json.loads(container) == POD["containers"][0]["command"]


def test_the_worker_of_the_unit_starts_is_ready_and_stops(server: Server, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    words = shlex.split(COMMAND.replace("127.0.0.1:808%i", str(port)).replace("%H-%i", "web-1"))
    environment = {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "jobboard", *words[1:]],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: status(port, "/ready") == 200, 60, what="the worker is ready")
        board = server.board("mails")
        board.post("{}", name="hold", id="j", retain=60_000)
        wait_until((tmp_path / "begun").exists, 60, what="the handler runs")
        assert board.get("j")["worker"] == "web-1"
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: status(port, "/ready") == 503, 60, what="it is about to stop")
        assert status(port, "/live") == 200 and board.state("j") == "claimed"
        (tmp_path / "end").touch()
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        assert board.state("j") == "complete"
        lines = [json.loads(line) for line in said.splitlines()]
        [ended] = [line for line in lines if line.get("job_id") == "j" and "outcome" in line]
        assert {"job_name", "queue", "attempt", "duration"} <= set(ended)
    finally:
        process.kill()
        process.communicate()


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0

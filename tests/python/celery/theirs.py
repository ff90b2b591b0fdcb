"""Runs Celery's and kombu's own tests over a board, and writes docs/reports/celery.md.

    make celery

They are not ours: `scripts/celery` unpacks them from their source packages. A test that does not pass, and
for which `REASONS` has no word, makes the run fail.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from harness import KINDS, Server

ROOT = Path(__file__).resolve().parents[3]
PLACE = ROOT / "target" / "celery"
REPORT = ROOT / "docs" / "reports" / "celery.md"

ALSO = "fails in the same way over `redis://`"

LOOKS_TOO_SOON = f"it looks for a line of the log 10 ms after the result; {ALSO}"
OF_RESULTS = f"of the result backend: {ALSO} as a broker"

REASONS = {
    "test_fanout": "it publishes before anybody listens. Over Redis it passes since `drain_events` takes the "
    "answer to a subscription for an event there",
    "test_scheduled": "it wants to see a task with an ETA in the memory of the worker: here it waits in the "
    "server, in the state `scheduled`",
    "test_replaced_task_nesting_level_0": "it sets a variable after the post, and wants the signal of the"
    " worker to come later; here the task is there sooner",
    "test_chord_header_id_duplicated_on_rabbitmq_msg_duplication": "written for RabbitMQ; it "
    f"{ALSO}, where it is expected to",
    "test_mem_leak_unhandled_exceptions": f"memory that the test's own process takes; {ALSO}",
    "test_pubsub_subscribe_churn_while_draining": OF_RESULTS,
    "test_pubsub_reentrant_cancel_from_finalizer": OF_RESULTS,
    "test_task_success": LOOKS_TOO_SOON,
    "test_task_failed": LOOKS_TOO_SOON,
    "test_error_propagates_from_chord": "expected to fail over `redis://` (their issue 6437), where the URL "
    "tells that it is to",
    "test_pidbox_reset_after_repeated_control_errors": f"when it runs after certain other tests; {ALSO}",
}
"""What does not pass, and why: found by running each over `redis://` on the same server as well."""


class Suite(NamedTuple):
    key: str
    title: str
    folder: str
    words: tuple[str, ...]
    environment: Mapping[str, str]


class Outcome(NamedTuple):
    suite: Suite
    name: str
    state: str
    text: str


def of_kombu(server: Server) -> Suite:
    # A copy, so that pytest takes no conftest.py of ours.
    shutil.copy(Path(__file__).with_name("theirs_kombu.py"), PLACE / "kombu" / "test_theirs.py")
    return Suite(
        "kombu",
        "kombu: what all its transports share",
        "kombu",
        ("test_theirs.py", "-c", "pyproject.toml", "--rootdir", ".", "-o", "python_classes=test_*"),
        {"JOBBOARD_URL": f"redis://127.0.0.1:{server.port}/1"},
    )


def of_celery(server: Server, results: str, tests: Sequence[str]) -> Suite:
    place = f"127.0.0.1:{server.port}/0"
    urls = {"TEST_BROKER": f"jobboard://{place}", "TEST_BACKEND": f"{results}://{place}"}
    own = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(server.port)}
    title = f"Celery's integration tests, results by `{results}://`"
    return Suite(
        f"celery-{results}", title, "celery", (*tests, "-p", "celery.contrib.pytest"), {**urls, **own}
    )


def run(suite: Suite, log: Path) -> list[Outcome]:
    found = log.with_suffix(".xml")
    found.unlink(missing_ok=True)
    programs = PLACE / "venv" / "bin"
    python, path = programs / "python", f"{programs}:{os.environ.get('PATH', '')}"
    with log.open("wb") as output:
        subprocess.run(
            [
                python,
                "-m",
                "pytest",
                *suite.words,
                "-p",
                "no:cacheprovider",
                "--timeout",
                "300",
                f"--junitxml={found}",
            ],
            cwd=PLACE / suite.folder,
            env={**os.environ, "PYTHONPATH": ".", "PATH": path, **suite.environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if not found.exists():
        sys.exit(f"{suite.title}: it did not run; see {log}")
    return outcomes_of(suite, found)


def outcomes_of(suite: Suite, found: Path) -> list[Outcome]:
    return [outcome(suite, case) for case in ET.parse(found).iter("testcase")]


def outcome(suite: Suite, case: ET.Element) -> Outcome:
    name = f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"
    for state in ("failure", "error", "skipped"):
        told = case.find(state)
        if told is not None:
            kind = told.get("type", "")
            return Outcome(
                suite, name, "xfailed" if "xfail" in kind else state, told.get("message", "").split("\n")[0]
            )
    return Outcome(suite, name, "passed", "")


def report(found: list[Outcome], kind: str) -> str:
    lines = [
        "# Celery's and kombu's own tests",
        "",
        f"Those of kombu {version('kombu')} and Celery {version('celery')}, as their source packages carry"
        f" them, over `jobboard://` on a server of the kind {kind}. Made by `make celery`.",
        "",
        "| | passed | failed | skipped | expected to fail |",
        "|---|---:|---:|---:|---:|",
    ]
    for suite in dict.fromkeys(one.suite.title for one in found):
        counts = Counter(one.state for one in found if one.suite.title == suite)
        failed = counts["failure"] + counts["error"]
        lines.append(
            f"| {suite} | {counts['passed']} | {failed} | {counts['skipped']} | {counts['xfailed']} |"
        )
    lines += [
        "",
        "The last row has those of the row before that are skipped where the URL of the result backend does"
        " not begin with `redis`.",
    ]
    failed_ones = [one for one in found if one.state in ("failure", "error")]
    lines += ["", "## What failed", ""]
    lines += ["| test | why |", "|---|---|"] if failed_ones else ["Nothing."]
    lines += [f"| `{one.name}` | {reason(one) or one.text} |" for one in failed_ones]
    lines += ["", "## What was skipped, in their words", "", "| tests | reason |", "|---:|---|"]
    skipped = Counter(one.text for one in found if one.state == "skipped")
    for text, count in skipped.most_common():
        lines.append(f"| {count} | {text.replace('|', '/')} |")
    return "\n".join([*lines, ""])


def node(one: Outcome) -> str:
    """How pytest is told to run it."""
    place, _, test = one.name.partition("::")
    folder, integration, file, *classes = place.split("/")
    return "::".join([f"{folder}/{integration}/{file}.py", *classes, test])


def reason(one: Outcome) -> str | None:
    return REASONS.get(re.sub(r"\[.*", "", one.name).split("::")[-1])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", choices=KINDS, default="redis82")
    parser.add_argument("--only", help="run this suite, and take the others from their last run")
    parser.add_argument("--report", type=Path, default=REPORT)
    options = parser.parse_args()
    logs = PLACE / "logs"
    logs.mkdir(exist_ok=True)
    found: list[Outcome] = []
    server = Server(options.server)

    def did(suite: Suite) -> list[Outcome]:
        print(suite.title, flush=True)
        server.client().flushall()
        log = logs / f"{suite.key}.log"
        last = log.with_suffix(".xml")
        if options.only and not suite.key.startswith(options.only) and last.exists():
            outcomes = outcomes_of(suite, last)
        else:
            outcomes = run(suite, log)
        found.extend(outcomes)
        return outcomes

    try:
        did(of_kombu(server))
        first = did(of_celery(server, "jobboard", ["t/integration"]))
        # Some of Celery's tests run only where the URL of the result backend begins with `redis`.
        again = [node(one) for one in first if one.state == "skipped" and "edis" in one.text]
        if again:
            did(of_celery(server, "redis", again))
    finally:
        server.close()
    options.report.write_text(report(found, options.server))
    unknown = [one for one in found if one.state in ("failure", "error") and reason(one) is None]
    for one in unknown:
        print(f"{one.suite.title}: {one.name}: {one.text}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())

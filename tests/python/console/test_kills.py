"""The job of docs/guides/approval.md: it calls a model, waits for a person, and sends what it has.

Worker, server and console are killed with SIGKILL in turn. JOB.EXPLAIN says at each moment what the job waits
for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Server, wait_until
from harness.board import from_pairs, text
from harness.server import WITH_ITS_PARENT
from playwright.sync_api import Page, expect

PROGRAM = '''
import sys, time
from pathlib import Path
from jobboard import Board, Context, Worker

folder = Path(sys.argv[2])
board = Board("letters", f"redis://127.0.0.1:{sys.argv[1]}")


def outside(name):
    """A call of another service: it is under way until the test lets it answer."""
    with (folder / "calls").open("a") as calls:
        print(name, file=calls, flush=True)
    while not (folder / name).exists():
        time.sleep(0.01)
    return name


@board.task(retain="1h")
def letter(context: Context, order: dict) -> str | None:
    context.step("draft", outside, "model")
    answer = context.wait_for("approved", within="2d")
    if answer is None or not answer.value:
        return None
    return context.step("send", outside, "mail")


if sys.argv[3:] == ["post"]:
    print(letter.post({"n": 1}))
else:
    Worker(board, lease="6s", stop_within="1s").run()
'''


class Case:
    """The program, its job, and what it has called."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        (folder / "program.py").write_text(PROGRAM)
        self.workers: list[subprocess.Popen] = []
        posted = subprocess.run(
            [*self.words, "post"], capture_output=True, text=True, timeout=120, check=True
        )
        self.id = posted.stdout.strip()

    @property
    def words(self) -> list[str]:
        return [sys.executable, str(self.folder / "program.py"), str(self.server.port), str(self.folder)]

    def work(self) -> None:
        self.workers.append(subprocess.Popen([*WITH_ITS_PARENT, *self.words]))

    def kill_worker(self) -> None:
        self.workers[-1].kill()
        self.workers[-1].wait()

    def answers(self, name: str) -> None:
        (self.folder / name).touch()

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []

    def reasons(self) -> dict[str, str]:
        """What JOB.EXPLAIN says: its reasons, with a sentence each."""
        with self.server.connect() as client:
            found = from_pairs(client.execute_command("JOB.EXPLAIN", "letters", self.id))
        rows = [from_pairs(one) for one in found["reasons"]]
        return {text(row["reason"]): text(row["text"]) for row in rows}

    def explains(self, reason: str) -> str:
        """Waits until JOB.EXPLAIN names this reason; its sentence."""
        wait_until(lambda: reason in self.reasons(), what=f"the job waits for: {reason}")
        return self.reasons()[reason]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()


@pytest.fixture
def case(tmp_path: Path):
    server = Server("redis82", config=["appendonly yes", "appendfsync always"])
    case = Case(tmp_path, server)
    yield case
    case.close()
    server.close()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_job_outlives_the_death_of_everything_around_it(case: Case, page: Page, consoles: Callable):
    server = case.server
    assert case.explains("unclaimed")
    server.restart(kill=True)
    assert case.explains("unclaimed")

    # In the call of the model the worker dies, and then the server.
    case.work()
    assert case.explains("claimed")
    wait_until(lambda: case.calls() == ["model"], what="the model is called")
    case.kill_worker()
    assert case.explains("unclaimed")
    case.work()
    wait_until(lambda: case.calls() == ["model", "model"], what="the model is called again")
    server.restart(kill=True)
    assert case.explains("claimed")
    case.answers("model")

    # Nothing that dies while it waits for a person changes what it waits for.
    assert "It waits for the signal approved." in case.explains("signals")
    calls = case.calls()
    case.kill_worker()
    server.restart(kill=True)
    assert "It waits for the signal approved." in case.explains("signals")
    first = consoles(server, "--write")
    page.goto(first.at("/job", b="letters", id=case.id))
    expect(page.locator("#explain")).to_contain_text("It waits for the signal approved.")
    first.process.kill()
    first.process.wait()
    second = consoles(server, "--write")
    page.goto(second.at("/job", b="letters", id=case.id))
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="Send the signal").click()
    expect(page.get_by_role("status")).to_contain_text("woken")
    second.process.kill()

    # The answer is there, whoever dies: no draft is made again, and the mail is sent.
    server.restart(kill=True)
    assert case.explains("unclaimed")
    case.work()
    wait_until(lambda: case.calls() == [*calls, "mail"], what="the mail is sent")
    case.kill_worker()
    case.work()
    wait_until(lambda: case.calls() == [*calls, "mail", "mail"], what="the mail is sent again")
    case.answers("mail")
    case.explains("ended")
    with server.connect() as client:
        assert server.board("letters").state(case.id) == "complete"
        assert client.execute_command("JOB.COUNT", "letters") == 0
    assert case.calls() == [*calls, "mail", "mail"]

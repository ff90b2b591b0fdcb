"""Actions of a console that lets its users act: each is shown before it is done, then done as shown."""

from __future__ import annotations

import contextlib
import datetime
import re

import pytest
from harness import Board, Server
from playwright.sync_api import Page, expect
from proxy import Proxy

from .process import Console
from .test_pages import row


def failed(board: Board, id: str, kind: str = "IOError", **options: object) -> None:
    board.post(id=id, **options)
    token = board.claim_one("w1", id=id)["token"]
    board.fail("w1", id, kind, "it broke", token=token, noretry=True)


def act(page: Page, verb: str) -> None:
    """From a job's page to the question, and the answer yes."""
    page.locator("p.actions").get_by_role("link", name=verb, exact=True).click()
    page.get_by_role("button", name=verb, exact=True).click()


@pytest.fixture
def jobs(board: Board) -> Board:
    """`ready`, `running` (by w1) and `broken`."""
    board.post(id="ready", priority=1)
    board.post(id="running")
    board.claim_one("w1", id="running")
    failed(board, "broken")
    return board


@pytest.mark.parametrize(
    ("id", "verb", "state"),
    [
        ("broken", "Requeue", "ready"),
        ("ready", "Cancel", "cancelled"),
        ("running", "Release", "ready"),
    ],
)
def test_one_job(page: Page, writing: Console, jobs: Board, id: str, verb: str, state: str):
    page.goto(writing.at("/job", b=jobs.key, id=id))
    act(page, verb)
    expect(page.get_by_role("status")).to_contain_text(f"{verb}: ")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Job {id}")
    expect(page.locator("#now .state-line")).to_contain_text(state)
    assert jobs.state(id) == state


def test_nothing_is_done_before_the_answer(page: Page, writing: Console, jobs: Board):
    before = jobs.digest()
    for verb in ["cancel", "requeue", "delete", "release"]:
        page.goto(writing.at("/confirm", b=jobs.key, verb=verb, id=["ready", "running", "broken", "unknown"]))
        expect(page.get_by_role("heading", level=1)).to_contain_text("is this right?")
    page.get_by_role("link", name="Do nothing").click()
    for verb in ["pause", "resume"]:
        page.goto(writing.at("/confirm", b=jobs.key, verb=verb))
    page.goto(writing.at("/confirm", b=jobs.key, verb="delete", where="1", state="ready"))
    assert jobs.digest() == before


def test_the_dry_run_says_who_is_passed_over(page: Page, writing: Console, jobs: Board):
    page.goto(writing.at("/confirm", b=jobs.key, verb="cancel", id=["ready", "running", "broken", "unknown"]))
    expect(page.locator("#fits")).to_have_text("2 of 4")
    told = page.locator("tbody tr")
    expect(told.nth(0)).to_contain_text("cancelled")
    expect(told.nth(1)).to_contain_text("its worker is asked to stop")
    expect(told.nth(2)).to_contain_text("passed over: it has ended")
    expect(told.nth(3)).to_contain_text("passed over: the board does not know it")
    expect(page.locator("#command")).to_have_text(f"JOB.CANCEL {jobs.key} 2 ready running")
    page.get_by_label("also take running jobs").check()
    page.get_by_role("button", name="Dry run").click()
    expect(told.nth(1)).to_contain_text("its worker loses it")
    expect(page.locator("#command")).to_have_text(f"JOB.CANCEL {jobs.key} 2 ready running FORCE")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Cancel: 2 cancelled.")
    assert [jobs.state(id) for id in ["ready", "running", "broken"]] == ["cancelled", "cancelled", "failed"]


def test_nothing_is_done_but_what_was_shown(page: Page, writing: Console, jobs: Board):
    """A job that was passed over stays so, though it would fit by the time of the answer; one that no longer
    fits makes the server refuse all."""
    failed(jobs, "broken-2")
    page.goto(writing.at("/confirm", b=jobs.key, verb="requeue", id=["broken", "broken-2", "ready"]))
    expect(page.locator("#fits")).to_have_text("2 of 3")
    jobs.cancel("ready")
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("status")).to_have_text("Requeue: 2 done.")
    assert jobs.state("ready") == "cancelled"
    page.goto(writing.at("/confirm", b=jobs.key, verb="cancel", id=["broken", "broken-2"]))
    token = jobs.claim_one("w1", id="broken")["token"]
    jobs.fail("w1", "broken", "IOError", "it broke", token=token, noretry=True)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("ENDED failed broken")
    assert jobs.state("broken-2") == "ready"


def test_deleting_a_job(page: Page, writing: Console, jobs: Board):
    page.goto(writing.at("/job", b=jobs.key, id="broken"))
    act(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Jobs of {jobs.key}")
    assert jobs.state("broken") is None


def test_changing_priority_and_queue(page: Page, writing: Console, jobs: Board):
    page.goto(writing.at("/job", b=jobs.key, id="ready"))
    page.get_by_role("link", name="Change", exact=True).click()
    expect(page.locator("#forecast")).to_contain_text("Say what to change")
    page.get_by_label("priority").fill("42")
    page.get_by_role("textbox", name="queue", exact=True).fill("fast")
    page.get_by_label("run after").fill("2h")
    page.get_by_label("retries").fill("3")
    page.get_by_label("lease of the next claim").fill("5m")
    page.get_by_label("add tags").fill("red, dark blue")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#command")).to_contain_text(
        'SET PRIORITY 42 QUEUE fast DELAY 2h RETRIES 3 LEASE 5m TAG 2 red "dark blue"'
    )
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#record")).to_contain_text("42")
    job = jobs.get("ready", fields=["priority", "queue", "state", "retries", "tags", "due"])
    assert (job["priority"], job["queue"], job["state"]) == (42, "fast", "scheduled")
    assert (job["retries"], job["tags"]) == (3, ["red", "dark blue"])
    page.goto(writing.at("/confirm", b=jobs.key, verb="update", id=["ready", "running"]))
    page.get_by_label("run after").fill("0")
    page.get_by_label("remove tags").fill("red")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#fits")).to_have_text("1 of 2")
    expect(page.locator("tbody tr").nth(1)).to_contain_text("passed over: a worker has it")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("1 done.")
    job = jobs.get("ready", fields=["state", "tags"])
    assert (job["state"], job["tags"]) == ("ready", ["dark blue"])


def test_a_scheduled_job_runs_now(page: Page, writing: Console, board: Board):
    """Also one that waits for its retry; a ready or running one is not offered it."""
    board.set(backoff_base=3_600_000, backoff_max=3_600_000, jitter=0)
    board.post(id="later", delay=3_600_000)
    board.post(id="again", retries=2)
    token = board.claim_one("w1", id="again")["token"]
    board.fail("w1", "again", "IOError", "it broke", token=token)
    for id in ["later", "again"]:
        assert board.state(id) == "scheduled"
        page.goto(writing.at("/job", b=board.key, id=id))
        page.locator("p.actions").get_by_role("link", name="Run now", exact=True).click()
        expect(page.locator("#command")).to_have_text(f"JOB.UPDATE {board.key} 1 {id} SET DELAY 0")
        assert board.state(id) == "scheduled"
        page.get_by_role("button", name="Run now", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("Run now: 1 done.")
        expect(page.locator("#now .state-line")).to_contain_text("ready")
        assert board.claim_one("w2", id=id)
    page.goto(writing.at("/job", b=board.key, id="later"))
    expect(page.locator("p.actions")).to_contain_text("Release")
    expect(page.get_by_role("link", name="Run now")).to_have_count(0)


def test_many_scheduled_jobs_run_now(page: Page, writing: Console, board: Board):
    """Chosen ones, and of all that match the scheduled ones, after the dry run."""
    board.post_many(5, queue="q", delay=3_600_000)
    ids = [job["id"] for job in board.list_all(state="scheduled")]
    board.post(id="ready", queue="q")
    board.post(id="other", queue="r", delay=3_600_000)
    page.goto(writing.at("/jobs", b=board.key, queue="q"))
    page.get_by_label(f"Choose {ids[0]}").check()
    page.get_by_label("Choose ready").check()
    page.get_by_role("button", name="Run now", exact=True).click()
    expect(page.locator("#fits")).to_have_text("1 of 2")
    expect(page.locator("#forecast")).to_contain_text("passed over: it is ready already")
    page.get_by_role("button", name="Run now", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Run now: 1 done.")
    page.goto(writing.at("/jobs", b=board.key, queue="q"))
    page.get_by_role("link", name="Run now: the scheduled ones").click()
    expect(page.locator("#fits")).to_have_text("4")
    expect(page.locator("#command")).to_contain_text("WHERE STATE scheduled QUEUE q COUNT 1000 SET DELAY 0")
    page.get_by_role("button", name="Run now", exact=True).click()
    expect(page.locator("#outcome")).to_have_text("All done.")
    assert (board.count(state="ready"), board.count(state="scheduled")) == (6, 1)
    page.goto(writing.at("/confirm", b=board.key, verb="now", where="1", state="ready"))
    expect(page.get_by_role("alert")).to_contain_text("Run now is for scheduled jobs")


def test_chosen_jobs_of_a_list(page: Page, writing: Console, jobs: Board):
    for number in range(4):
        failed(jobs, f"f{number}")
    page.goto(writing.at("/jobs", b=jobs.key, state="failed"))
    page.get_by_label("Choose f1").check()
    page.get_by_label("Choose f3").check()
    page.get_by_role("button", name="Requeue").click()
    page.get_by_label("into the queue").fill("again")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("status")).to_have_text("Requeue: 2 done.")
    assert [job["id"] for job in jobs.list_all(queue="again")] == ["f1", "f3"]
    page.goto(writing.at("/jobs", b=jobs.key, state="failed"))
    page.get_by_label("All of this page").check()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#fits")).to_have_text("3 of 3")


def test_all_jobs_that_pass_filters(page: Page, writing: Console, board: Board):
    board.post_many(3500, queue="bulk")
    board.post(id="other")
    page.goto(writing.at("/jobs", b=board.key, queue="bulk"))
    page.locator("p.actions").get_by_role("link", name="Cancel").click()
    expect(page.locator("#fits")).to_have_text(re.compile("^3.500$"))
    expect(page.locator("#command")).to_have_text(f"JOB.CANCEL {board.key} WHERE QUEUE bulk COUNT 1000")
    assert board.count(state="cancelled") == 0
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#outcome")).to_have_text("All done.")
    expect(page.locator("#done")).to_have_text(re.compile("^3.500$"))
    assert (board.count(state="cancelled"), board.state("other")) == (3500, "ready")


def test_all_that_pass_where_a_command_carries_less(
    page: Page, writing: Console, store: Server, board: Board
):
    board.post_many(1500)
    with store.configured(jobboard__max_batch=1000):
        page.goto(writing.at("/confirm", b=board.key, verb="delete", where="1", state="ready"))
        expect(page.locator("#fits")).to_have_text(re.compile("^more than 1.000$"))
        page.get_by_role("button", name="Delete").click()
        expect(page.locator("#outcome")).to_have_text("All done.")
    assert board.count() == 0


def test_failures_of_a_kind(page: Page, writing: Console, board: Board):
    for number in range(3):
        failed(board, f"a{number}", "IOError")
        failed(board, f"b{number}", "ValueError")
    page.goto(writing.at("/board", b=board.key))
    page.locator("#kinds tr").filter(has_text="IOError").get_by_role("link", name="requeue").click()
    expect(page.locator("#fits")).to_have_text("3")
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator("#outcome")).to_have_text("All done.")
    assert (board.count(state="ready"), board.kinds()) == (3, {"ValueError": 3})


def test_work_can_be_stopped(page: Page, consoles, store: Server, board: Board):
    """It ends after the slice at hand. Each takes two seconds, as the server seems to be far away."""
    board.post_many(20_000)
    with contextlib.closing(Proxy(store.port)) as proxy:
        console = consoles(f"redis://127.0.0.1:{proxy.port}", "--write")
        page.goto(console.at("/confirm", b=board.key, verb="delete", where="1", state="ready"))
        expect(page.locator("#fits")).to_have_text(re.compile("^more than 10.000$"))
        proxy.delay = 1.0
        page.get_by_role("button", name="Delete").click()
        with page.expect_response(re.compile("/stop")):
            page.get_by_role("button", name="Stop").click()
        at_hand = board.count()
        expect(page.locator("#outcome")).to_have_text("Stopped.")
        left = board.count()
        # One slice more, when it was still on its way to the server.
        assert left in (at_hand, at_hand - 1000) and left > 0
        expect(page.locator("#done")).to_have_text(re.compile(f"^{(20_000 - left) // 1000}.000$"))


def test_pausing_and_resuming_board_queue_and_group(page: Page, writing: Console, board: Board):
    board.post(queue="q", group="g")
    page.goto(writing.at("/board", b=board.key))
    # Only what can be done now is offered.
    expect(page.get_by_role("link", name="Resume the board")).to_have_count(0)
    page.get_by_role("link", name="Pause the board").click()
    expect(page.locator("#fits")).to_have_text("1 ready")
    page.get_by_label("for this many seconds").fill("900")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#overview")).to_contain_text("paused until 20")
    assert board.claim("w1", queues=["q"]) == []
    expect(page.get_by_role("link", name="Pause the board")).to_have_count(0)
    page.get_by_role("link", name="Resume the board").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#overview")).to_contain_text("Not paused")
    for section, command in [("#queues", f"JOB.PAUSE {board.key} QUEUE q"), ("#groups", "GROUP g")]:
        page.goto(writing.at("/board" if section == "#queues" else "/limits", b=board.key))
        page.locator(section).get_by_role("link", name="pause").click()
        expect(page.locator("#command")).to_contain_text(command)
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(section)).to_contain_text("paused")
        assert board.claim("w1", queues=["q"]) == []
        page.locator(section).get_by_role("link", name="resume").click()
        page.get_by_role("button", name="Resume").click()
        expect(page.locator(section).get_by_role("link", name="pause")).to_have_count(1)
    assert len(board.claim("w1", queues=["q"])) == 1


def test_a_limit_that_owes_is_paused_and_resumed(page: Page, writing: Console, board: Board):
    """A report above the estimate is a debt, which the page names; a pause is shown before it is made."""
    board.set(limit="tokens", rate=1, rate_period=3_600_000, burst=100)
    board.set(queue="q", limits=["tokens"])
    board.post_many(2, queue="q")
    job = board.claim_one("w1", queues=["q"])
    board.heartbeat("w1", job["id"], costs=(1, "tokens", 150))
    assert board.limits()["tokens"]["debt"] > 0
    page.goto(writing.at("/limits", b=board.key))
    tokens = row(page, "tokens", "#limits")
    expect(tokens).to_contain_text("no permits until 20")
    expect(tokens).to_contain_text("owes 50 permits")
    page.locator("#limits").get_by_role("link", name="pause").click()
    expect(page.locator("#command")).to_contain_text(f"JOB.PAUSE {board.key} LIMIT tokens")
    assert not board.limits()["tokens"].get("paused")
    page.get_by_role("button", name="Pause").click()
    expect(tokens).to_contain_text("paused")
    assert board.limits()["tokens"]["paused"]
    page.locator("#limits").get_by_role("link", name="resume").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#limits").get_by_role("link", name="pause")).to_have_count(1)


def test_editing_settings(page: Page, writing: Console, board: Board):
    board.set(limit="api", concurrency=9)
    page.goto(writing.at("/settings", b=board.key, queue="q"))
    page.get_by_label("lease", exact=True).fill("61000")
    page.get_by_label("limits", exact=True).fill("api")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#forecast tbody tr")).to_have_count(2)
    expect(page.locator("#forecast")).to_contain_text("30000 (default)")
    expect(page.locator("#command")).to_have_text(
        re.compile(
            f"^JOB.SETTINGS SET {board.key} QUEUE q (lease 61000 limits 1 api|limits 1 api lease 61000)$"
        )
    )
    assert board.settings("lease", queue="q")["lease"] == [30000, "default"]
    page.get_by_role("button", name="Change settings").click()
    assert board.settings("lease", "limits", queue="q") == {
        "lease": [61000, "queue"],
        "limits": [["api"], "queue"],
    }
    page.get_by_label("Reset lease").click()
    page.get_by_role("button", name="Change settings").click()
    assert board.settings("lease", queue="q")["lease"] == [30000, "default"]
    page.get_by_label("lease", exact=True).fill("2h")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Change settings").click()
    assert board.settings("lease", queue="q")["lease"] == [7_200_000, "queue"]
    page.get_by_label("lease", exact=True).fill("soon")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Change settings").click()
    expect(page.get_by_role("alert")).to_contain_text("lease must be an integer")


def test_settings_without_scripts(writing: Console, board: Board):
    """A browser without scripts sends all fields; only those that differ are asked about."""
    board.post()
    form = {f"s.{name}": value[0] for name, value in board.settings().items() if name != "limits"}
    query = {"b": board.key, "verb": "settings", **form, "s.lease": 5}
    answer = writing.ask(writing.at("/confirm", **query))
    assert answer.status == 303
    assert answer.headers["Location"].endswith("verb=settings&s.lease=5")


def test_schedules(page: Page, writing: Console, board: Board):
    board.client.execute_command("JOB.SCHEDULE", "SET", board.key, "tick", "x", "EVERY", 3_600_000)
    for link, button in [("pause", "Pause the schedule"), ("resume", "Resume the schedule"),
                         ("run now", "Run the schedule now"), ("delete", "Delete the schedule")]:  # fmt: skip
        page.goto(writing.at("/schedules", b=board.key))
        page.get_by_role("link", name=link).click()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("status")).to_contain_text(button)
    assert board.state("@tick@1") == "ready"
    assert board.client.execute_command("JOB.SCHEDULE", "GET", board.key, "tick") is None


def test_what_the_server_refuses_is_told(page: Page, writing: Console, board: Board):
    board.post(id="a")
    board.post(id="b", after=["a"])
    page.goto(writing.at("/job", b=board.key, id="a"))
    act(page, "Delete")
    expect(page.get_by_role("alert")).to_contain_text("DEPENDED b a")
    assert board.state("a") == "ready"


def test_the_audit_says_who_did_what(page: Page, writing: Console, jobs: Board):
    page.goto(writing.at("/audit", b=jobs.key))
    expect(page.locator("#audit")).to_contain_text("Nothing was done here yet")
    page.goto(writing.at("/job", b=jobs.key, id="ready"))
    act(page, "Cancel")
    page.goto(writing.at("/confirm", b=jobs.key, verb="requeue", id="broken"))
    jobs.delete("broken")
    jobs.post(id="broken")
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("alert")).to_contain_text("NOTENDED")
    page.goto(writing.at("/audit", b=jobs.key))
    rows = page.locator("#audit tbody tr")
    expect(rows).to_have_count(2)
    for number, texts in [
        (0, ["JOB.REQUEUE", "NOTENDED"]),
        (1, ["default", f"JOB.CANCEL {jobs.key} 1 ready", "cancelled"]),
    ]:
        for text in texts:
            expect(rows.nth(number)).to_contain_text(text)


def test_a_job_that_waits_for_its_children(page: Page, writing: Console, board: Board):
    """Its page says how many, what becomes of it, and leads to those without success."""
    token = board.call("POST", "x", "ID", "p") and board.claim_one("w1", id="p")["token"]
    board.mpost(["x"] * 3, ids=["a", "b", "c"], parent="p")
    board.call("AWAIT", "w1", "p", "CHILDREN", "TOKEN", token)
    board.claim_one("w1", id="a")
    board.fail("w1", "a", noretry=True)
    page.goto(writing.at("/job", b=board.key, id="p"))
    expect(page.locator("#awaits")).to_contain_text("2 of 3 have not ended")
    expect(page.locator("#awaits")).to_contain_text("until that one is requeued or deleted")
    explained = "Waits for its children: It waits for 2 of its 3 children."
    expect(page.locator("#explain")).to_contain_text(explained)
    expect(page.locator(".timeline")).to_contain_text("Waits for its children")
    expect(page.locator(".history")).to_contain_text("3 children")
    page.locator("#awaits").get_by_role("link", name="failed").click()
    expect(page.locator("table.jobs tbody tr")).to_have_count(1)


@pytest.mark.parametrize(
    ("button", "value"),
    [("Approve", "true"), ("Reject", "false"), ("Send", '<img src=x onerror="alert(1)">')],
)
def test_a_person_answers_a_job_that_waits(
    page: Page, writing: Console, board: Board, button: str, value: str
):
    """Found by a search, answered on its page, and sent by whoever is signed in."""
    signal = "<b>approved</b>"
    board.call("POST", "x", "ID", "j", "AWAIT", 1, signal, "WITHIN", "1h", "ONTIMEOUT", "cancel")
    board.call("POST", "x", "ID", "other", "AWAIT", 1, "checked")
    page.goto(writing.at("/find", b=board.key, q=f"awaits:{signal}"))
    expect(page.locator("a.chip.on")).to_contain_text(f"awaits:{signal}")
    expect(page.locator("table.jobs tbody tr")).to_have_count(1)
    page.locator("table.jobs tbody a").first.click()
    expect(page.locator("#awaits")).to_contain_text("then it is cancelled.")
    expect(page.locator("#awaits li")).to_contain_text(signal)
    if button == "Send":
        page.get_by_label("another value").fill(value)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator("#command")).to_contain_text("SENDER default")
    assert board.state("j") == "blocked"
    page.get_by_role("button", name="Send the signal").click()
    expect(page.get_by_role("status")).to_contain_text("woken")
    expect(page.locator("#awaits form")).to_have_count(0)
    assert (board.state("j"), board.state("other")) == ("ready", "blocked")
    expect(page.locator(".timeline")).to_contain_text("Waits for a signal")
    expect(page.locator(".timeline")).to_contain_text("After a signal")
    expect(page.locator(".history")).to_contain_text(f"signal default: {signal}")
    signals = str(board.get("j", fields=["signals"]))
    assert value in signals and "default" in signals


@pytest.mark.parametrize(("link", "value"), [("Approve", "true"), ("Reject", "false")])
def test_a_signal_is_answered_on_the_line_of_time(
    page: Page, writing: Console, board: Board, link: str, value: str
):
    """One of two that the job waits for; after the dry run, and back at the job."""
    board.call("POST", "x", "ID", "j", "AWAIT", 2, "approved", "paid")
    page.goto(writing.at("/job", b=board.key, id="j"))
    rows = page.locator("ol.timeline > li")
    rows.filter(has_text="Waits for approved").get_by_role("link", name=f"{link} approved").click()
    expect(page.locator("#command")).to_have_text(
        f"JOB.SIGNAL {board.key} approved 1 j VALUE {value} SENDER default"
    )
    assert board.get("j", fields=["awaits"])["awaits"]["missing"] == ["approved", "paid"]
    page.get_by_role("button", name="Send the signal").click()
    expect(rows.filter(has_text="Signal approved")).to_contain_text(f"from default: {value}")
    expect(rows.filter(has_text="Waits for approved")).to_have_count(0)
    expect(rows.filter(has_text="Waits for paid").get_by_role("link")).to_have_count(2)


def test_the_audit_outlives_the_console_with_history(page: Page, consoles, store, board: Board, tmp_path):
    """In files that nobody else may read, and that are deleted when they are old."""
    board.post(id="j")
    month = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=31)
    (tmp_path / f"audit-{month:%Y-%m-%d}.jsonl").write_text("no line\n")
    console = consoles(store, "--write", "--history", str(tmp_path), "--board", board.key)
    page.goto(console.at("/job", b=board.key, id="j"))
    act(page, "Cancel")
    expect(page.get_by_role("status")).to_contain_text("cancelled")
    console.close()
    files = sorted(file.name for file in tmp_path.glob("audit-*.jsonl"))
    today = f"audit-{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}.jsonl"
    assert today in files and f"audit-{month:%Y-%m-%d}.jsonl" not in files
    assert (tmp_path / today).stat().st_mode & 0o777 == 0o600
    console = consoles(store, "--history", str(tmp_path), "--board", board.key)
    page.goto(console.at("/audit", b=board.key))
    expect(page.locator("#audit")).to_contain_text("in the last 30 days")
    row = page.locator("#audit tbody tr")
    expect(row).to_have_count(1)
    for text in ["default", f"JOB.CANCEL {board.key} 1 j", "cancelled"]:
        expect(row).to_contain_text(text)

"""Jobs that go on from queue to queue, and which handler does each step."""

from __future__ import annotations

import jobboard
import pytest
from jobboard import ArgumentError, Handlers, Next, Worker


def test_one_worker_does_all_steps_by_name(jobs) -> None:
    done = []

    @jobs.handler("fetch")
    def fetch(context, payload):
        done.append(("fetch", context.job.queue, payload))
        return Next("images", payload + 1, name="resize")

    @jobs.handler("resize")
    def resize(context, payload):
        done.append(("resize", context.job.queue, payload))
        return Next("web", payload + 1, name="publish")

    @jobs.handler("publish")
    def publish(context, payload):
        done.append(("publish", context.job.queue, payload))
        return payload

    jobs.post(1, id="a", name="fetch")
    Worker(jobs, queues=[]).run(burst=True)
    assert done == [("fetch", "default", 1), ("resize", "images", 2), ("publish", "web", 3)]
    assert (jobs.get("a").name, jobs.result("a", timeout="1s")) == ("publish", 3)


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_one_worker_does_all_steps_by_queue(jobs, mode) -> None:
    done = []

    @jobs.handler("photo")
    def fetch(context, payload):
        done.append("fetch")
        return Next("images")

    @jobs.handler(queue="images")
    def resize(context, payload):
        done.append("resize")
        return Next("web")

    @jobs.handler("photo", queue="web")
    def publish(context, payload):
        done.append("publish")

    jobs.post(1, id="a", name="photo")
    Worker(jobs, queues=[], mode=mode).run(burst=True)
    assert done == ["fetch", "resize", "publish"]
    assert jobs.state("a") == "complete"


@pytest.mark.parametrize("queues", [[], ["default", "publish"]])
def test_a_next_that_leads_to_the_same_handler_again_has_failed(jobs, queues) -> None:
    calls = []

    @jobs.handler("resize")
    def resize(context, payload):
        calls.append(context.attempt)
        return Next("publish", payload)

    jobs.post(1, id="a", name="resize", retries=5)
    Worker(jobs, queues=queues).run(burst=True)
    job = jobs.get("a")
    assert (job.state, job.kind, job.queue, calls) == ("failed", "SameHandler", "default", [1])
    assert "Next('publish', name=…)" in job.message


NAMED = {
    "task": lambda jobs, task: task.next(2),
    "with a delay": lambda jobs, task: task.using(delay="1ms").next(2),
    "in another queue": lambda jobs, task: task.using(queue="publish").next(2),
    "by name": lambda jobs, task: Next("default", {"number": 2}, name="again"),
    "in bytes": lambda jobs, task: Next(b"default", {"number": 2}, name=b"again"),
}


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
@pytest.mark.parametrize("again", NAMED.values(), ids=NAMED.keys())
def test_a_task_that_names_itself_as_the_next_has_failed(jobs, again, mode) -> None:
    calls = []

    def function(number: int = 1):
        calls.append(number)
        return again(jobs, task) if len(calls) < 10 else None

    task = jobs.task("again", retries=5)(function)
    id = task.post()
    Worker(jobs, mode=mode, queues=["default", "publish"]).run(burst=True)
    job = jobs.get(id)
    assert (job.state, job.kind, job.queue, calls) == ("failed", "SameHandler", "default", [1])
    assert "'again' in the queue" in job.message and "Abandon(delay=…)" in job.message


def test_a_handler_of_all_names_may_name_the_next_step(jobs) -> None:
    seen = []

    @jobs.handler()
    def any(context, payload):
        seen.append(context.job.name)
        return Next("default", payload, name="second") if context.job.name == "first" else "done"

    jobs.post(1, id="a", name="first")
    Worker(jobs, queues=[]).run(burst=True)
    assert (seen, jobs.result("a")) == (["first", "second"], "done")


def test_a_queue_that_others_serve_may_have_a_step_of_the_same_name(jobs) -> None:
    @jobs.handler()
    def any(context, payload):
        return Next("elsewhere")

    jobs.post(1, id="a", name="photo")
    Worker(jobs).run(burst=True)
    assert (jobs.get("a").queue, jobs.get("a").name) == ("elsewhere", "photo")


def test_the_handler_of_a_queue_goes_before_that_of_a_name() -> None:
    handlers = Handlers()
    functions = {
        key: (lambda context, payload: None) for key in [("n", "q"), (None, "q"), ("n", None), (None, None)]
    }
    for (name, queue), function in functions.items():
        handlers.handler(name, queue=queue)(function)
    for job, key in [
        (("n", "q"), ("n", "q")),
        (("m", "q"), (None, "q")),
        ((None, "q"), (None, "q")),
        (("n", "p"), ("n", None)),
        (("m", "p"), (None, None)),
        ((None, "p"), (None, None)),
    ]:
        assert handlers.find(*job).function is functions[key]
    with pytest.raises(ValueError, match="there is a handler of name='n', queue='q' already"):
        handlers.handler("n", queue="q")(print)
    with pytest.raises(ValueError, match="already"):
        handlers.include(handlers)
    with pytest.raises(jobboard.NoHandler, match="no handler of the name 'x' in the queue 'y'"):
        Handlers().find("x", "y")


def test_a_decorator_without_brackets_is_told_as_such(jobs) -> None:
    with pytest.raises(TypeError, match=r"@board.handler\('name'\) or @board.handler\(\)"):

        @jobs.handler
        def handler(context, payload): ...


def test_a_task_goes_on_with_another(jobs) -> None:
    @jobs.task()
    def fetch(url: str) -> Next:
        return shrink.using(delay="5ms").next(url, size=1000)

    @jobs.task(queue="images")
    def shrink(url: str, size: int) -> str | Next:
        return publish.next(url, size // 10) if size else "nothing"

    @jobs.task(queue="web", priority=3)
    def publish(url: str, size: int) -> str:
        return f"{url}: {size}"

    id = fetch.post("cat.png")
    with pytest.raises(ArgumentError, match="got `str` - at `size`"):
        publish.next("cat.png", "large")
    worker = Worker(jobs)
    while jobs.count():
        worker.run(burst=True)
    assert fetch.result(id) == "cat.png: 100"
    job = jobs.get(id)
    assert (job.queue, job.name, job.priority) == ("web", "publish", 3)

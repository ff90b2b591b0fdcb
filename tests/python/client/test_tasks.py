"""Tasks: posted by their arguments, which are checked, and given to the function as it wants them."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import os
import pydoc
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import jobboard
import pydantic
import pytest
import redis.asyncio
from jobboard import (
    ArgumentError,
    AsyncBoard,
    Board,
    BoardError,
    Context,
    Exists,
    NoHandler,
    ShardedBoard,
    Worker,
)

NOW = datetime(2020, 11, 23, 2, 30, tzinfo=timezone.utc)


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    n: int = 1


class Colour(enum.Enum):
    RED = "red"


class Address(pydantic.BaseModel):
    street: str = pydantic.Field(alias="Street")
    since: datetime


VALUES = {
    "when": (datetime, NOW),
    "order": (UUID, uuid4()),
    "price": (Decimal, Decimal("1.10")),
    "colour": (Colour, Colour.RED),
    "data": (bytes, b"\x00\xff"),
    "wait": (timedelta, timedelta(minutes=90)),
    "lines": (list[Line], [Line("a", Decimal("0.5"), 2), Line("b", Decimal("3"))]),
    "address": (Address, Address(Street="Elm", since=NOW)),
    "pair": (tuple[int, str], (1, "a")),
    "words": (set[str], {"a", "b"}),
    "maybe": (datetime | None, None),
    "number": (float, 3.0),
    "any": (dict, {"n": [1, 2.5, None, "é"]}),
}


def run(board) -> None:
    assert Worker(board, concurrency=1).run(burst=True)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("name", VALUES)
def test_arguments_and_results_keep_their_types(jobs, name, codec) -> None:
    kind, value = VALUES[name]
    board = Board("board", jobs.client, codec=codec)
    seen = []

    def echo(value):
        seen.append(value)
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    task = board.task("echo")(echo)
    id = task.using(retain="1m").post(value)
    run(board)
    assert seen == [value] and type(seen[0]) is type(value)
    found = task.result(id)
    assert found == value and type(found) is type(value)


def test_a_payload_is_an_object_of_what_was_given(jobs) -> None:
    @jobs.task("mail", queue="mails")
    def mail(to: str, subject: str = "Hello", *copies: str, **headers: int) -> None: ...

    id = mail.post("ann")
    assert jobs.get(id).payload_bytes == b'{"to":"ann"}'
    id = mail.post("ann", "Bye", "bob", "eve", priority=3)
    job = jobs.get(id)
    assert job.payload == {"to": "ann", "subject": "Bye", "copies": ["bob", "eve"], "priority": 3}
    assert (job.name, job.queue) == ("mail", "mails")


def test_the_function_is_called_as_it_was_posted(jobs) -> None:
    seen = []

    @jobs.task()
    def every(a, b=2, /, c=3, *rest, d=4, **more) -> None:
        seen.append((a, b, c, rest, d, more))

    every.post(1)
    every.post(1, c=5)
    every.post(1, 7, 8, 9, 10, d=0, e=1)
    jobs.post({"a": 9, "d": 8}, name="every")  # as another language would
    run(jobs)
    assert seen == [
        (1, 2, 3, (), 4, {}),
        (1, 2, 5, (), 4, {}),
        (1, 7, 8, (9, 10), 0, {"e": 1}),
        (9, 2, 3, (), 8, {}),
    ]


def test_arguments_may_be_called_as_we_call_ours(jobs) -> None:
    seen = []

    @jobs.task()
    def task(self: int, board: int, id: int, name: int) -> None:
        seen.append((self, board, id, name))

    task.post(self=1, board=2, id=3, name=4)
    run(jobs)
    assert seen == [(1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        ((), {}, "missing a required argument: 'to'"),
        (("a", 1, None, 3), {}, "too many positional arguments"),
        (("a",), {"subjekt": "b"}, "unexpected keyword argument 'subjekt'"),
        ((5,), {}, "Expected `str`, got `int` - at `to`"),
        (("a", "3"), {}, "Expected `int`, got `str` - at `n`"),
        (("a",), {"lines": [{"sku": "a"}]}, "missing required field `price` - at `lines[0]`"),
    ],
)
def test_a_wrong_call_is_refused_at_the_post(jobs, args, options, said) -> None:
    @jobs.task("mail")
    def mail(to: str, n: int = 1, lines: list[Line] | None = None) -> None: ...

    for way in (mail.post, mail.job):
        with pytest.raises(ArgumentError) as refusal:
            way(*args, **options)
        assert str(refusal.value).startswith("mail: ") and said in str(refusal.value)
        assert "its arguments are (to: str, n: int = 1" in str(refusal.value)
    assert jobs.info() is None, "nothing was posted"


@pytest.mark.parametrize("payload", [None, [1], {}, {"to": 1}, {"to": "a", "extra": 1}])
def test_a_payload_of_others_that_does_not_fit_fails_by_name(jobs, payload) -> None:
    @jobs.task("mail")
    def mail(to: str) -> None: ...

    jobs.post(payload, id="a", name="mail", retries=0, elsewhere=True)
    run(jobs)
    job = jobs.get("a")
    assert (job.state, job.kind) == ("failed", "ArgumentError")
    assert job.message.startswith("mail: ") and "its arguments" in job.message and "(to: str)" in job.message


def test_options_of_a_call_go_before_those_of_the_task(jobs) -> None:
    @jobs.task("mail", queue="mails", retries=3, backoff=("10s", "1h"), timeout="5m", priority=1, delay="1h")
    def mail(to: str) -> None: ...

    job = jobs.get(mail.post("ann"))
    assert (job.queue, job.left, job.priority, job.state) == ("mails", 3, 1, "scheduled")
    default = jobs.get(jobs.post(elsewhere=True)).left
    other = mail.using(queue="urgent", retries=None, priority=9).using(at=NOW, id="now")
    assert other.post("ann") == "now"
    job = jobs.get("now")
    assert (job.queue, job.left, job.priority, job.state) == ("urgent", default, 9, "ready")
    assert mail.options["queue"] == "mails", "the task is as it was"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retrys": 3}, "no option 'retrys'; did you mean 'retries'?"),
        ({"id": "a"}, "'id' is of one job, not of a task"),
        ({"after": ["a"]}, "'after' is of one job"),
        ({"timeout": 300}, "timeout is text with a unit"),
        ({"backoff": 10}, "backoff is text with a unit"),
        ({"unique": ["who"]}, r"unique names 'who', which is no argument of \(to: str\)"),
    ],
)
def test_wrong_options_are_refused_where_they_stand(jobs, options, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):

        @jobs.task("mail", **options)
        def mail(to: str) -> None: ...

    assert not len(jobs.handlers)


def test_a_name_is_taken_once(jobs) -> None:
    jobs.task("mail")(print_it)
    with pytest.raises(ValueError, match="'mail'"):
        jobs.task("mail")(print_it)
    with pytest.raises(TypeError, match=r"@board.task\(\) to be named as it is"):
        jobs.task(print_it)


def print_it(text: str) -> None: ...


def test_unique_by_arguments(jobs) -> None:
    @jobs.task("mail", unique=True)
    def mail(to: str, lines: list[Line] | None = None) -> None: ...

    id = mail.post("ann")
    with pytest.raises(Exists, match=id):
        mail.post(to="ann", lines=None)  # the same as its default
    assert mail.post("bob") != id
    assert mail.using(onconflict="return").post("ann") == id
    assert mail.using(unique=False).post("ann") != id
    assert mail.using(unique=["to"]).post("ann", [Line("a", Decimal(1))])
    with pytest.raises(Exists):
        mail.using(unique=["to"]).post("ann")
    long = mail.post("x" * 1000)
    with pytest.raises(Exists, match=long):
        mail.post("x" * 1000)
    with pytest.raises(ValueError, match=r"using\(unique=None\)"):
        mail.post_many([{"to": "eve"}])


@pytest.mark.parametrize("none", [None, False])
def test_without_a_key_what_goes_with_one_goes_too(jobs, none) -> None:
    rules = {"onconflict": "return", "until": "start", "for_": "1h"}

    @jobs.task("mail", unique=True, retries=7, **rules)
    def mail(to: str) -> None: ...

    @jobs.task("note", unique="the one", **rules)
    def note(to: str) -> None: ...

    for task in (mail, note):
        free = task.using(unique=none)
        assert free.post("ann") != free.post("ann")
        assert len(set(free.post_many([{"to": "ann"}] * 2))) == 2
        assert free.using(retries=1).post("ann") != free.post("ann")
        jobs.flow([free.job("ann"), free.job("ann")])
        free.schedule("0 2 * * *", id=task.name, arguments={"to": "ann"})
    if none is None:
        by_name = {"name": "mail", "unique": None}
        assert jobs.post({"to": "ann"}, **by_name) != jobs.post({"to": "ann"}, **by_name)
        [first, second] = jobs.post_many([{"to": "ann"}] * 2, **by_name)
        assert first != second and jobs.get(first, fields=["retries"]).retries == 7
    assert mail.post("bob") == mail.post("bob"), "its own rules are as they were"
    with pytest.raises(BoardError, match="ONCONFLICT needs UNIQUE"):
        mail.using(unique=none, onconflict="return").post("ann")


def test_many_are_checked_before_the_first_is_posted(jobs) -> None:
    seen = []

    @jobs.task("mail")
    def mail(to: str, n: int = 0) -> None:
        seen.append((to, n))

    with pytest.raises(ArgumentError, match="got `int` - at `to`"):
        mail.post_many([{"to": "a"}, {"to": 5}])
    assert jobs.info() is None
    ids = mail.post_many(({"to": "a", "n": n} for n in range(3)), ids=["x", "y", "z"])
    assert ids == ["x", "y", "z"]
    run(jobs)
    assert seen == [("a", 0), ("a", 1), ("a", 2)]


def test_a_schedule_posts_calls(jobs) -> None:
    seen = []

    @jobs.task("nightly", queue="night", retries=2)
    def nightly(full: bool = False) -> None:
        seen.append(full)

    with pytest.raises(ArgumentError):
        nightly.schedule("0 2 * * *", arguments={"fully": True})
    nightly.schedule("0 2 * * *", tz="Europe/Berlin", arguments={"full": True})
    row = jobs.schedule_get("nightly")
    assert (row["cron"], row["tz"], row["queue"]) == ("0 2 * * *", "Europe/Berlin", "night")
    nightly.schedule(every="1h", id="hourly")
    assert [row["id"] for row in jobs.schedule_list()] == ["hourly", "nightly"]
    jobs.schedule_run("nightly")
    jobs.schedule_run("hourly")
    run(jobs)
    assert seen == [True, False]


def test_a_worker_claims_from_the_queues_of_its_tasks(jobs) -> None:
    seen = []

    @jobs.task("mail", queue="mails")
    def mail() -> None:
        seen.append("mail")

    @jobs.task()
    def other() -> None:
        seen.append("other")

    mail.post()
    other.post()
    run(jobs)
    assert sorted(seen) == ["mail", "other"]


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_a_context_is_given_to_who_asks_for_it(jobs, mode) -> None:
    seen = []

    @jobs.task()
    def by_type(about: Context, n: int) -> None:
        seen.append((about.id, n))

    @jobs.task()
    def by_name(context, n):
        seen.append((context.id, n))

    @jobs.task()
    async def in_loop(context: Context, n: int) -> int:
        seen.append((context.id, n))
        by_type(n + 1)  # a plain call within a job passes its context on
        return n

    for task in (by_type, by_name, in_loop):
        task.using(id=task.name).post(n=1)
    assert Worker(jobs, mode=mode, concurrency=1).run(burst=True)
    assert seen == [("by_type", 1), ("by_name", 1), ("in_loop", 1), ("in_loop", 2)]


def test_a_task_is_the_function_too(jobs) -> None:
    @jobs.task()
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @jobs.task()
    def lone(context: Context) -> str:
        return context.id

    assert add(1) == 2 and add.__doc__ == "Adds." and add.__name__ == "add"
    with pytest.raises(RuntimeError, match=r"no job runs: call lone.function\(context, …\)"):
        lone()
    assert jobs.info() is None


def test_exceptions_that_end_a_job(jobs) -> None:
    @jobs.task(retries=5, noretry=(KeyError,))
    def lookup(what: str) -> None:
        raise KeyError(what)

    id = lookup.post("a")
    run(jobs)
    assert jobs.get(id).state == "failed" and jobs.get(id).left == 4


def test_a_name_that_no_task_has_is_refused(jobs) -> None:
    assert jobs.post(1, name="mial"), "without tasks it is another program's"
    jobs.task("mail")(print_it)
    for post in (
        lambda: jobs.post(1, name="mial"),
        lambda: jobs.post_many([1], name="mial"),
        lambda: jobs.call(1, name="mial"),
        lambda: jobs.flow([jobboard.Node("a", 1, name="mial")]),
        lambda: jobs.schedule_set("s", 1, every="1h", name="mial"),
    ):
        with pytest.raises(
            NoHandler, match="no task has the name 'mial'; did you mean 'mail'.*elsewhere=True"
        ):
            post()
    with pytest.raises(NoHandler, match="there are 'mail'"):
        jobs.post(1, name="report")
    assert jobs.count() == 1 and not [*jobs.schedule_list()]
    assert jobs.post(1, name="mial", elsewhere=True)
    assert jobs.flow([jobboard.Node("a", 1, name="mial", elsewhere=True)])
    jobs.schedule_set("s", 1, every="1h", name="mial", elsewhere=True)
    assert jobs.post({"text": "a"}, name="mail")
    jobs.handlers.handler(queue="bulk")(print)
    assert jobs.post(1, name="mial", queue="bulk"), "a handler does all of that queue"


def test_a_name_is_posted_where_its_task_is(jobs) -> None:
    seen = []

    @jobs.task("mail", queue="mails")
    def mail(to: str) -> None:
        seen.append(to)

    jobs.post({"to": "a"}, name="mail")
    jobs.post_many([{"to": "b"}], name="mail")
    jobs.flow([jobboard.Node("n", {"to": "c"}, name="mail")])
    jobs.schedule_set("s", {"to": "d"}, every="1h", name="mail")
    jobs.schedule_run("s")
    jobs.post({"to": "e"}, id="e", name="mail", queue="other")
    run(jobs)
    assert sorted(seen) == ["a", "b", "c", "d"] and jobs.get("e").state == "ready"


def test_annotations_that_no_payload_fits_are_refused(jobs) -> None:
    def two(a: Line | Other) -> None: ...

    def absent(a: Nowhere) -> None: ...  # noqa: F821

    with pytest.raises(TypeError, match="two: a cannot be read from a payload: .*more than one"):
        jobs.task()(two)
    with pytest.raises(TypeError, match="absent: the annotation of a cannot be read.*Nowhere.*at run time"):
        jobs.task()(absent)
    assert not len(jobs.handlers)


@dataclasses.dataclass
class Other:
    b: int


def test_what_cannot_be_encoded_says_what_can(jobs) -> None:
    @jobs.task()
    def thing(a: object) -> None: ...

    with pytest.raises(jobboard.PayloadError, match="a Server is none of what payloads hold: text, numbers"):
        thing.post(Server())
    with pytest.raises(jobboard.PayloadError, match="neither NaN nor infinity"):
        jobs.post({"a": [1, float("nan")]}, name="thing")
    assert jobs.info() is None


class Server: ...


def test_sharded_boards_have_tasks(server) -> None:
    shop = ShardedBoard("shop", server.client(decode_responses=False), shards=3)
    seen = []

    @shop.task("order", queue="orders")
    def order(n: int) -> int:
        seen.append(n)
        return n * 2

    ids = [order.post(n) for n in range(6)]
    order.post_many([{"n": n} for n in range(6, 10)])
    order.schedule(every="1h", arguments={"n": 10})
    shop.schedule_run("order")
    with pytest.raises(NoHandler):
        shop.post(1, name="odrer")
    run(shop)
    assert sorted(seen) == [*range(11)]
    assert order.result(ids[3]) == 6


def test_boards_of_asyncio_have_tasks(server, jobs) -> None:
    @jobs.task("twice")
    async def twice(n: int) -> Line:
        return Line("a", Decimal(n), n * 2)

    async def post() -> str:
        board = AsyncBoard("board", redis.asyncio.Redis(port=server.port))

        @board.task("own")
        def own(n: int) -> int: ...

        with pytest.raises(ArgumentError):
            await own.post("a")
        with pytest.raises(NoHandler):
            await board.post(1, name="onw")
        assert await own.post(1) and await own.post_many([{"n": 2}])
        await own.schedule(every="1h", arguments={"n": 3})
        id = await twice.on(board).using(retain="1m").post(5)
        await board.client.aclose()
        return id

    id = asyncio.run(post())
    Worker(jobs).run(burst=True)
    assert twice.result(id) == Line("a", Decimal(5), 10)


def test_child_processes_do_tasks(jobs, process, told) -> None:
    import client_app

    id = client_app.doubled.on(jobs).post(4, NOW)
    process("--processes", "1", "--burst").wait()
    assert told() == [f"{id} 4 2020"]
    assert client_app.doubled.on(jobs).result(id) == timedelta(seconds=8)


def test_a_task_that_no_process_could_import_is_refused(jobs) -> None:
    @jobs.task()
    def inner() -> None: ...

    with pytest.raises(
        ValueError, match="the task inner is not .*inner of the module .*define them at the top"
    ):
        Worker(jobs, mode="processes", concurrency=1).run(burst=True)


PROGRAM = """
import os
from dataclasses import dataclass
from jobboard import Board, Context, Worker

board = Board("board")

@dataclass
class Line:
    text: str

@board.task()
def plain() -> str:
    return f"plain {os.getpid()}"

@board.task("other", noretry=(KeyError,), queue="bulk", unique=["line"])
def typed(context: Context, line: Line, *rest: int, width: int = 2, **more: str) -> str:
    return f"{line.text} {width} {os.getpid()}"

@board.task()
async def waits(to: str) -> str:
    return f"{to} {os.getpid()}"

@board.handler(queue="raw")
def count(context, payload):
    return f"{payload} {context.board.count() > 0} {os.getpid()}"

if __name__ == "__main__":
    ids = [plain.post(), typed.post(Line("a")), waits.post("b"), board.post("c", queue="raw", retries=0)]
    assert WORKER.run(burst=True)
    print(os.getpid(), *[board.result(id, timeout='5s') for id in ids], sep="\\n")
"""


@pytest.mark.parametrize("how", ["", ", target='program:board'"], ids=["sent", "imported"])
@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"]], ids=["file", "module"])
def test_all_kinds_of_tasks_of_a_program_go_to_child_processes(jobs, server, tmp_path, how, words) -> None:
    worker = f"Worker(board, mode='processes', concurrency=1{how})"
    (tmp_path / "program.py").write_text(PROGRAM.replace("WORKER", worker))
    said = run_program(server, tmp_path, *words)
    assert said.returncode == 0, said.stderr
    parent, *results = said.stdout.splitlines()
    child = results[0].split()[-1]
    assert child != parent
    assert results == [f"plain {child}", f"a 2 {child}", f"b {child}", f"c True {child}"]


def test_tasks_of_a_program_without_a_file_are_refused(jobs, server, tmp_path) -> None:
    program = PROGRAM.replace("WORKER", "Worker(board, mode='processes', concurrency=1)")
    said = run_program(server, tmp_path, "-c", program)
    assert "the task plain is of a program that is no file" in said.stderr.splitlines()[-1]
    assert "target='module:board'" in said.stderr.splitlines()[-1]


def run_program(server, folder, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


class Unsendable:
    def __reduce__(self) -> Any:
        raise TypeError("it is a socket")


class UnsendableCodec(Unsendable):
    def encode(self, value: Any) -> bytes:
        return b""

    def decode(self, data: bytes) -> Any:
        return None


class UnsendableHook(Unsendable, jobboard.Hook): ...


@pytest.mark.parametrize(
    "options, what",
    [
        ({"codec": UnsendableCodec()}, "the codec"),
        ({"hook": UnsendableHook()}, "the hook"),
    ],
)
def test_what_cannot_be_sent_to_a_process_is_named(jobs, options, what) -> None:
    board = Board("board", jobs.client, **options)
    board.handlers.handler()(print)
    with pytest.raises(ValueError) as caught:
        Worker(board, mode="processes", concurrency=1).run(burst=True)
    said = str(caught.value)
    assert said.startswith(f"{what} cannot be sent to a child process (it is a socket)")
    assert "target='module:board'" in said


def test_a_board_at_a_target_brings_its_own_hook(jobs, server, monkeypatch) -> None:
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    import client_app

    id = client_app.doubled.on(jobs).post(4, NOW)
    board = Board("board", jobs.client, hook=UnsendableHook())
    board.handlers = client_app.board.handlers
    Worker(board, mode="processes", concurrency=1, target="client_app:board").run(burst=True)
    assert client_app.doubled.on(jobs).result(id) == timedelta(seconds=8)


def test_the_name_of_a_board_is_no_board() -> None:
    with pytest.raises(TypeError, match="Worker.board, target='app:board'.*jobboard worker app:board"):
        Worker("app:board", mode="processes")  # type: ignore[arg-type]


def test_a_task_posts_only_what_is_new(jobs) -> None:
    @jobs.task()
    def pay(account: str) -> None: ...

    once = pay.using(nx=True, id="a")
    assert (once.post("ann"), once.post("ann")) == ("a", None)
    assert once.using(id="b").post("ann") == "b"
    calls = [{"account": "ann"}] * 2
    assert pay.using(nx=True).post_many(calls, ids=["b", "c"]) == [None, "c"]
    assert pay.using(nx=False, id="d").post("ann") == "d"
    with pytest.raises(jobboard.Exists):
        pay.using(id="a").post("ann")
    for post in (once.job, once.schedule):
        with pytest.raises(TypeError, match="nx is of post and post_many"):
            post("* * * * *")
    with pytest.raises(TypeError, match="is of one job, not of a task"):
        jobs.task(nx=True)(print)


SAMPLE = Path(__file__).with_name("typed_tasks.py")


def test_mypy_knows_arguments_options_and_results() -> None:
    """Each line of the sample with an error says so, and no other line has one."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(SAMPLE)]
    found = subprocess.run(mypy, capture_output=True, text=True, cwd=SAMPLE.parents[3])
    errors = re.findall(r"typed_tasks.py:(\d+): error: .*\[([a-z-]+)\]", found.stdout)
    lines = SAMPLE.read_text().splitlines()
    wanted = [(str(n), line.split("# error: ")[1]) for n, line in enumerate(lines, 1) if "# error: " in line]
    assert len(wanted) > 8 and errors == wanted, found.stdout + found.stderr
    told = re.findall(r"note: Revealed type is \"(.*)\"", found.stdout)
    assert told == [line.split("# is: ")[1] for line in lines if "# is: " in line]


RULES: dict[str, Any] = {"retries": 3, "backoff": "7m", "jitter": 0, "priority": 7, "queue": "mails"}
FIELDS = ["left", "priority", "queue", "unique"]


def by_name(board: Any, how: str, **options: Any) -> str:
    """A job of the task `mail` to ann, posted by the task's name."""
    payload = {"to": "ann"}
    if how == "post":
        return board.post(payload, name="mail", **options)
    if how == "post_many":
        return board.post_many([payload], name="mail", **options)[0]
    if how == "flow":
        return board.flow([jobboard.Node("a", payload, name="mail", **options)])[0]
    board.schedule_set("nightly", payload, every="1h", name="mail", **options)
    id = board.schedule_run("nightly")
    board.schedule_del("nightly")
    return id


@pytest.mark.parametrize("how", ["post", "post_many", "flow", "schedule_set"])
def test_a_job_that_names_a_task_gets_its_options(jobs, how) -> None:
    """Guides once posted by name, and lost retries, keys and timeouts without a word."""

    @jobs.task("mail", **RULES, unique="one-mail")
    def mail(to: str) -> None: ...

    def rules(id: str) -> list[Any]:
        job = jobs.get(id, fields=FIELDS)
        return [getattr(job, name) for name in FIELDS]

    first = mail.post("ann")
    wanted = rules(first)
    assert wanted == [3, 7, "mails", "one-mail"]
    jobs.delete(first)
    id = by_name(jobs, how)
    assert rules(id) == wanted
    jobs.fail("w", id, "KeyError", token=jobs.claim_id("w", id).token)
    job = jobs.get(id)
    assert job.due - job.modified == 7 * 60_000
    jobs.delete(id)
    assert rules(by_name(jobs, how, retries=0, unique=None, queue="fast")) == [0, 7, "fast", None]


def test_a_key_of_the_arguments_is_made_also_by_name(jobs) -> None:
    @jobs.task("mail", unique=["to"])
    def mail(to: str, text: str = "") -> None: ...

    mail.post("ann", "a")
    with pytest.raises(Exists):
        jobs.post({"to": "ann", "text": "b"}, name="mail")
    jobs.post({"to": "bob"}, name="mail")
    with pytest.raises(Exists):
        mail.post("bob")
    with pytest.raises(ValueError, match="mail: jobs posted together .* write unique=None"):
        jobs.post_many([{"to": "eve"}, {"to": "fay"}], name="mail")
    assert len(jobs.post_many([{"to": "eve"}, {"to": "fay"}], name="mail", unique=None)) == 2
    assert jobs.post({"to": "ann"}, name="mail", elsewhere=True)


def test_a_time_goes_before_the_delay_of_the_task(jobs) -> None:
    @jobs.task("mail", delay="1h")
    def mail(to: str) -> None: ...

    job = jobs.get(jobs.post({"to": "ann"}, name="mail", at=NOW))
    assert job.state == "ready"
    assert jobs.state(jobs.post({"to": "ann"}, name="mail")) == "scheduled"


def test_by_name_a_key_of_a_task_leads_to_its_shard(jobs) -> None:
    board = ShardedBoard("board", jobs.client, shards=7)

    @board.task("mail", unique=["to"])
    def mail(to: str, text: str = "") -> None: ...

    for n in range(10):
        id = board.post({"to": f"p{n}", "text": "by name"}, name="mail")
        with pytest.raises(Exists):
            mail.post(f"p{n}", "by its task")
        assert board.get(id, fields=["unique"]).unique


def test_help_shows_what_a_verb_takes(jobs) -> None:
    @jobs.task()
    def mail(to: str) -> None: ...

    shown = pydoc.plain(pydoc.render_doc(type(mail)))
    assert "post(self, /, *args: 'P.args', **kwargs: 'P.kwargs') -> 'str'" in shown
    assert re.search(r"schedule\(self, /, cron: .* every: .*\) -> 'None'", shown)
    assert str(inspect.signature(mail.schedule)).startswith("(cron: ")
    assert jobboard.Board.post(jobs, 1, id="a", elsewhere=True) == "a"

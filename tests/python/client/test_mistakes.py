"""The mistakes of a newcomer: each has a sentence that says what to do."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import sys
import threading
import time
from datetime import timedelta
from socket import create_server

import jobboard
import pytest
import redis
from jobboard import AsyncBoard, Board, NoBoard, NoModule, Worker
from jobboard.cli import main
from jobboard.worker import engine, outage, watchdog
from redis._parsers import _HiredisParser, _RESP3Parser
from redis.utils import HIREDIS_AVAILABLE

from .test_health import probe

LOGGER = "jobboard.worker"
NOWHERE = "redis://127.0.0.1:1"
WHERE = r"\$JOBBOARD_URL or the board's URL says where the server is; `jobboard serve` starts one"


async def post(url: str) -> None:
    board = AsyncBoard("board", url)
    try:
        await board.post(1)
    finally:
        await board.client.aclose()


def test_no_server_is_there(capsys, caplog, work, until) -> None:
    with pytest.raises(redis.ConnectionError, match=WHERE):
        Board("board", NOWHERE).post(1)
    with pytest.raises(redis.ConnectionError, match=WHERE):
        asyncio.run(post(NOWHERE))
    assert main(["list", "board", "--url", NOWHERE]) == 1
    assert "`jobboard serve` starts one" in capsys.readouterr().err
    board = Board("board", NOWHERE)
    board.task("nothing")(lambda: None)
    with caplog.at_level(logging.WARNING, LOGGER):
        work(board)
        until(lambda: "`jobboard serve` starts one" in caplog.text)
    assert "the server does not answer (" in caplog.text


def test_a_server_without_the_module(fresh_server, capsys) -> None:
    server = fresh_server(module=False)
    board = Board("board", server.client(decode_responses=False))
    board.task("nothing")(lambda: None)
    sentence = (
        "no jobboard module: .*; load it there, name a server that has it, or start one with `jobboard serve`"
    )
    for ask in (lambda: board.post({}, name="nothing"), lambda: Worker(board).run(burst=True)):
        with pytest.raises(NoModule, match=sentence):
            ask()


@pytest.mark.parametrize("url", ["localhost:6379", "http://user:secret@localhost", "redis://localhost:port"])
def test_what_is_no_url(url) -> None:
    for make in (Board, AsyncBoard):
        with pytest.raises(
            ValueError, match="is no URL of a server, such as redis://127.0.0.1:6379"
        ) as caught:
            make("board", url)
        assert "secret" not in str(caught.value)


def test_a_wrong_password(server) -> None:
    said = r"^user and password stand in the URL: redis://user:password@host:port \(the server says: \w.*\)$"
    with pytest.raises(redis.AuthenticationError, match=said):
        Board("board", f"redis://nobody:wrong@127.0.0.1:{server.port}").post(1)


def test_a_worker_with_a_wrong_password_ends(server) -> None:
    board = Board("board", f"redis://nobody:wrong@127.0.0.1:{server.port}")
    board.task("nothing")(lambda: None)
    with pytest.raises(redis.AuthenticationError, match="user and password stand in the URL"):
        Worker(board).run()


def test_a_key_that_is_no_board(server, jobs, work) -> None:
    jobs.client.set("board", "text")
    sentence = (
        "WRONGTYPE the board's key holds something else: give the board another name, or delete that key"
    )
    with pytest.raises(NoBoard, match=sentence):
        jobs.post(1)
    jobs.task("nothing")(lambda: None)
    with pytest.raises(NoBoard, match=sentence):
        Worker(jobs).run(burst=True)


def test_no_task_at_all_or_none_for_a_job(jobs, caplog) -> None:
    with pytest.raises(
        ValueError, match=r"there are no tasks: decorate functions with @board.task\(\), and import"
    ):
        Worker(jobs)
    jobs.post(1, name="mail")  # before there are tasks
    jobs.task("male")(lambda: None)
    with caplog.at_level(logging.WARNING, LOGGER):
        Worker(jobs).run(burst=True)
    assert "no handler of the name 'mail' in the queue 'default': such jobs go back" in caplog.text
    assert "is its module imported here?" in caplog.text


def test_a_payload_that_cannot_be_encoded(jobs) -> None:
    with pytest.raises(
        jobboard.PayloadError, match="a socket is none of what payloads hold: text, numbers, lists"
    ):
        jobs.post({"a": [socket()]})


class socket: ...


def test_the_wrong_thing_for_a_board_or_a_client(server) -> None:
    with pytest.raises(TypeError, match="a worker works on one board: start a Worker for each"):
        Worker([Board("a")])
    with pytest.raises(TypeError, match="a worker needs a Board or a ShardedBoard with handlers"):
        Worker(server.client())
    with pytest.raises(TypeError, match="this client is one of redis.asyncio: use AsyncBoard"):
        Board("a", redis.asyncio.Redis())


def test_a_lease_shorter_than_what_keeps_the_interpreter(jobs, caplog, work, until) -> None:
    @jobs.task()
    def hold() -> None:
        ctypes.PyDLL(None).usleep(900_000)  # in C, without letting other threads run

    with caplog.at_level(logging.WARNING, LOGGER):
        worker = work(jobs, lease="300ms", concurrency=1).worker
        until(lambda: worker._engine and all(one.beaten for one in worker._engine.each_sender()))
        id = hold.post()
        until(lambda: jobs.get(id).state in ("complete", "ready"))
        until(lambda: "no heartbeat for" in caplog.text)
    assert "longer than the lease of 0.3 s" in caplog.text and "mode='processes'" in caplog.text


def test_a_worker_that_keeps_its_leases_says_nothing(jobs, caplog, work, until) -> None:
    @jobs.task()
    def wait(context) -> None:
        context.sleep("700ms")

    id = wait.post()
    with caplog.at_level(logging.WARNING, LOGGER):
        work(jobs, lease="30s", concurrency=1)
        until(lambda: jobs.get(id).state == "complete")
    assert not [one for one in caplog.records if one.name.startswith("jobboard")]


def test_a_blocked_event_loop(jobs, caplog, monkeypatch, until, work) -> None:
    monkeypatch.setattr(watchdog, "EVERY", 0.05)
    told = []

    @jobs.task()
    async def blocks() -> None:
        while not told:  # until it has been said
            time.sleep(0.01)

    blocks.post()
    with caplog.at_level(logging.WARNING, LOGGER):
        work(jobs, mode="asyncio", concurrency=1)
        until(lambda: "in blocks: await" in caplog.text)
        told.append(True)
    said = next(one for one in caplog.messages if "in blocks: await" in one)
    assert (
        "test_mistakes.py:" in said and "in blocks: await what waits" in said and "asyncio.to_thread" in said
    )


def test_an_event_loop_that_waits_is_not_blocked(caplog) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    dog = watchdog.Watchdog(loop)
    alive = threading.Event()
    loop.call_soon_threadsafe(dog._sign, alive)
    assert alive.wait(120)
    with caplog.at_level(logging.WARNING, LOGGER):
        while sys._current_frames()[dog.thread].f_code.co_name != "select":
            time.sleep(0.01)
        dog._tell()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(120)
    loop.close()
    assert not [one for one in caplog.records if one.name.startswith("jobboard")]


# Posts that nobody could do


def test_a_payload_that_is_not_what_the_task_takes(jobs) -> None:
    @jobs.task("mail")
    def mail(to: str, copies: int = 1) -> None: ...

    for wrong in ({"too": "ann"}, {"to": 5}, ["ann"], None):
        with pytest.raises(jobboard.ArgumentError, match="^mail: .*to: str, copies: int = 1"):
            jobs.post(wrong, name="mail")
        with pytest.raises(jobboard.ArgumentError, match="^mail: "):
            jobs.post_many([{"to": "ann"}, wrong], name="mail")
        with pytest.raises(jobboard.ArgumentError, match="^mail: "):
            jobs.flow([jobboard.Node("a", wrong, name="mail")])
        with pytest.raises(jobboard.ArgumentError, match="^mail: "):
            jobs.schedule_set("nightly", wrong, every="1d", name="mail")
    assert jobs.count() == 0
    jobs.post({"to": "ann"}, name="mail")
    jobs.post({"too": "ann"}, name="mail", elsewhere=True)
    assert jobs.count() == 2


def test_a_post_without_a_name_where_every_task_has_one(jobs) -> None:
    @jobs.task("mail")
    def mail(to: str) -> None: ...

    sentence = (
        "no handler does jobs without a name in the queue 'default'; say which task does it: name='mail'"
    )
    with pytest.raises(jobboard.NoHandler, match=sentence):
        jobs.post({"to": "ann"})
    jobs.task("report")(lambda: None)
    with pytest.raises(jobboard.NoHandler, match="name=…, one of 'mail', 'report'. When another program"):
        jobs.flow([jobboard.Node("a", {"to": "ann"})])
    jobs.post({"to": "ann"}, elsewhere=True)
    jobs.handler(queue="bulk")(lambda context, payload: None)
    jobs.post({"to": "ann"}, queue="bulk")
    jobs.handler()(lambda context, payload: None)
    jobs.post({"to": "ann"})
    assert jobs.count() == 3


# Arguments


def test_a_url_where_the_name_of_the_board_stands() -> None:
    for make in (Board, AsyncBoard):
        with pytest.raises(ValueError, match=r"comes first: Board\('mails', 'redis://…@db:6379'\)") as caught:
            make("redis://me:secret@db:6379")
        assert "secret" not in str(caught.value)


def test_lists_where_ids_stand(jobs) -> None:
    for verb in ("cancel", "release", "requeue", "delete"):
        with pytest.raises(
            TypeError, match=rf"{verb}: an id is text, not \['x'\]: {verb}\(\*ids\) takes those"
        ):
            getattr(jobs, verb)(["x"])
    with pytest.raises(TypeError, match="update: an id is text, not 5$"):
        jobs.update(5, priority=1)


def test_what_is_no_job_of_a_flow(jobs) -> None:
    mail = jobs.task("mail")(lambda to: None)
    sentence = r"a flow is made of jobs: mail.job\('ann'\), group\(…\), chain\(…\) or a Node, not "
    for make in (
        lambda: jobboard.chain(mail.job("ann"), 3),
        lambda: jobboard.group(mail),
        lambda: jobs.flow([mail.job("ann"), "x"]),
    ):
        with pytest.raises(TypeError, match=sentence):
            make()


def test_calls_that_are_no_dicts(jobs) -> None:
    @jobs.task()
    def mail(to: str) -> None: ...

    with pytest.raises(
        TypeError, match="^mail: each call is a dict of arguments, such as {'to': …}, not 'a'$"
    ):
        mail.post_many(["a"])


def test_a_backoff_the_wrong_way_round(jobs) -> None:
    with pytest.raises(ValueError, match=r"backoff begins with the shorter wait: \('10s', '1h'\), not"):
        jobs.task(backoff=("1h", "10s"))(lambda: None)


def test_a_delay_that_is_over(jobs) -> None:
    for options in ({"delay": timedelta(seconds=-1)}, {"expire": timedelta(hours=-2)}):
        with pytest.raises(ValueError, match="is a duration from now on, and cannot be negative"):
            jobs.post(1, **options)
    jobs.post(1, retain="forever")


def test_options_spelled_like_others(jobs) -> None:
    with pytest.raises(TypeError, match="a task has no option 'retry'; write retries=3"):
        jobs.task(retry=3)(lambda: None)
    with pytest.raises(
        TypeError, match="a task has no option 'colour'; there are after, after_children, at, "
    ):
        jobs.task("a")(lambda: None).using(colour=3)


@pytest.mark.parametrize(
    "name, says",
    [
        *((name, r"write mail.post\(…\)") for name in ("delay", "enqueue", "defer")),
        *(
            (name, r"write mail.using\(delay='10s', queue='mails'\).post\(…\)")
            for name in ("apply_async", "configure")
        ),
        *((name, r"write mail.job\(…\), and board.flow\(chain\(…\)\)") for name in ("s", "si", "signature")),
    ],
)
def test_words_of_other_libraries(jobs, name, says) -> None:
    @jobs.task()
    def mail(to: str) -> None: ...

    with pytest.raises(AttributeError, match=f"a task has no '{name}': {says}"):
        getattr(mail, name)("ann")
    assert not hasattr(mail, "nothing_of_the_kind")


def test_sending_as_with_dramatiq(jobs) -> None:
    @jobs.task()
    def mail(to: str) -> None: ...

    with pytest.raises(TypeError, match=r"^mail: write mail.post\(…\) to post it$"):
        mail.send("ann")


# What a worker and a result tell


def test_a_job_that_failed_says_what_and_why(jobs) -> None:
    @jobs.task(retries=0)
    def mail(to: str) -> None:
        raise ConnectionError("no route to mx1")

    id = mail.post("ann")
    Worker(jobs).run(burst=True)
    with pytest.raises(
        jobboard.JobFailed, match=f"^{id} failed: ConnectionError: no route to mx1$"
    ) as caught:
        mail.result(id, timeout="5s")
    assert (caught.value.job.kind, caught.value.job.message) == ("ConnectionError", "no route to mx1")
    other = mail.post("bob")
    jobs.cancel(other)
    with pytest.raises(jobboard.JobFailed, match=f"^{other} cancelled"):
        mail.result(other, timeout="5s")


def test_handlers_that_do_not_stop(jobs, caplog, work, until, monkeypatch) -> None:
    monkeypatch.setattr(engine, "STUCK", 0.0)
    let_go = threading.Event()

    @jobs.task(timeout="1s", retries=0)
    def hangs(n: int) -> None:
        let_go.wait()  # like a read without a timeout

    @jobs.task()
    def other() -> None: ...

    ids = hangs.post_many([{"n": 1}, {"n": 2}])
    with caplog.at_level(logging.WARNING, LOGGER):
        running = work(jobs, concurrency=2, lease="5s", health_port="127.0.0.1:0")
        until(lambda: [job.state for job in jobs.get_many(ids)] == ["failed", "failed"])
        until(lambda: "does nothing more: all 2 places are held by jobs that do not stop" in caplog.text)
        for id in ids:
            [said] = [one for one in caplog.messages if one.startswith(f"hangs {id} still runs, ")]
            assert "holds one of 2 places: let its handler call context.check()" in said
            assert "timeout" in said and "mode='processes', interrupt='kill'" in said
        status, about = probe(running.worker, "/live")
        assert (status, about["stuck"]) == (503, 2), "to start it again would help"
        waits = other.post()
        let_go.set()
        until(lambda: jobs.state(waits) == "complete")
        until(lambda: probe(running.worker, "/live")[0] == 200)


def test_a_server_that_is_away_is_told_of_once_and_so_is_its_return(
    fresh_server, caplog, work, until, monkeypatch
) -> None:
    monkeypatch.setattr(outage, "AGAIN", 1.0)
    server = fresh_server(appendonly=True)
    board = Board("board", server.client(decode_responses=False))
    done = board.task("nothing")(lambda: None)

    def told(what: str) -> list[str]:
        return [one for one in caplog.messages if what in one]

    with caplog.at_level(logging.WARNING, LOGGER):
        work(board, lease="2s", concurrency=2)
        first = done.post()
        until(lambda: board.state(first) == "complete")
        server.kill()
        until(lambda: len(told("the server has not answered for")) >= 2)
        server.restart()
        until(lambda: told("the server is back after"))
        second = done.post()
        until(lambda: board.state(second) == "complete")
    assert len(told("the server does not answer")) == 1
    assert len(told("the server is back after")) == 1
    assert len(told("server")) == 2 + len(told("the server has not answered for"))


def test_options_among_the_arguments_of_a_task_are_told_where_they_stand(jobs) -> None:
    @jobs.task()
    def mail(to: str) -> None: ...

    for verb in ("post", "job", "next"):
        with pytest.raises(jobboard.ArgumentError, match=rf"mail\.using\(delay=…\)\.{verb}\(…\)"):
            getattr(mail, verb)("ann", delay="5s")
    with pytest.raises(TypeError, match=r"arguments=\{'to': …\}"):
        mail.schedule("0 3 * * *", to="ann")
    with pytest.raises(TypeError, match=r"mail\.using\(queue=…\)\.schedule\(…\)"):
        mail.schedule("0 3 * * *", queue="bulk")
    with pytest.raises(TypeError, match="a schedule has no option 'evry'; did you mean 'every'\\?$"):
        mail.schedule(evry="1h")

    @jobs.task()
    def free(**more: str) -> None: ...

    assert jobs.get(free.post(delay="5s")).payload == {"delay": "5s"}
    assert jobs.count() == 1


def test_another_users_job_is_refused_without_a_name(jobs) -> None:
    jobs.post(1, id="a", user="ann")
    with pytest.raises(jobboard.NotOwner, match="^NOTOWNER another user posted it$"):
        jobs.cancel("a", by="bob")


@pytest.mark.parametrize("parser", [*([_HiredisParser] if HIREDIS_AVAILABLE else []), _RESP3Parser])
def test_a_web_server_is_no_server_for_boards(parser: type) -> None:
    with create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        pool = redis.ConnectionPool(port=server.getsockname()[1], parser_class=parser)
        with pytest.raises(redis.InvalidResponse, match="a web server answers there, such as the console"):
            Board("board", redis.Redis(connection_pool=pool)).count()


@pytest.mark.parametrize("verb", ["delete", "cancel", "release", "requeue"])
def test_a_selection_of_nothing_is_not_one_of_everything(jobs, verb) -> None:
    """As when the list of ids or queues was made by a program, and is empty."""
    jobs.post(1, id="j")
    nothing = ({"queue": []}, {"id": ()}, {"meta": {"plan": []}}, {"meta": {}}, {"name": frozenset()})
    for filters in nothing:
        name = next(iter(filters))
        with pytest.raises(ValueError, match=f"the filter {name} names nothing"):
            getattr(jobs, f"{verb}_where")({"state": "ready", **filters})
    assert jobs.state("j") == "ready"
    assert jobs.count(state="ready", not_={"queue": []}) == 1


@pytest.mark.parametrize("verb", ["delete", "cancel", "release", "requeue"])
def test_a_selection_without_a_filter_says_what_to_write(jobs, verb) -> None:
    for nothing in ({}, {"state": None}, {"tracked": False}):
        with pytest.raises(ValueError, match=rf"{verb}_where needs a filter, such as .*'failed'") as found:
            getattr(jobs, f"{verb}_where")(nothing)
        assert ("board.client.delete(board.key)" in str(found.value)) == (verb == "delete")


def test_an_option_is_told_by_the_name_that_it_has_in_python(jobs) -> None:
    with pytest.raises(TypeError, match=r"await_ is a list, such as await_=\['mails'\]"):
        jobs.post(1, await_=5)


def test_a_worker_of_a_queue_that_no_task_has_says_so(jobs, caplog) -> None:
    @jobs.task(queue="mails")
    def send(to: str) -> None: ...

    with caplog.at_level("WARNING", "jobboard.worker"):
        Worker(jobs, concurrency=1, queues=["mials"]).run(burst=True)
        assert "no task has the queue mials" in caplog.text and "the tasks have mails" in caplog.text
        caplog.clear()
        Worker(jobs, concurrency=1, queues=["mails"]).run(burst=True)
        jobs.handlers.handler()(lambda context, payload: None)
        Worker(jobs, concurrency=1, queues=["any"]).run(burst=True)
        assert "no task has" not in caplog.text


def test_a_job_that_waits_for_its_children_is_logged_as_that(jobs, caplog) -> None:
    @jobs.handler("sum")
    def add(context, payload):
        context.step("parts", lambda: context.board.post(1, name="sum", parent=context.id, queue="later"))
        return context.wait_for_children()

    @jobs.handler("ask")
    def ask(context, payload):
        return context.wait_for("approved")

    jobs.post(1, id="parent", name="sum")
    jobs.post(1, id="asks", name="ask")
    with caplog.at_level("INFO", "jobboard.worker"):
        Worker(jobs, concurrency=1).run(burst=True)
    lines = [line for line in caplog.messages if " waits for " in line]
    assert ["waits for its children" in line for line in lines if "parent" in line] == [True]
    assert ["waits for signals" in line for line in lines if "asks" in line] == [True]


@pytest.mark.parametrize("connections", [redis.ConnectionPool, redis.BlockingConnectionPool])
def test_a_pool_without_room_for_a_worker(server, connections) -> None:
    def board(most: int) -> Board:
        client = redis.Redis(connection_pool=connections(port=server.port, max_connections=most))
        found = Board("board", client)
        found.task("nothing")(lambda: None)
        return found

    with pytest.raises(ValueError, match="a worker takes 4 connections, and max_connections of its .* is 3:"):
        Worker(board(3))
    enough = board(4)
    enough.post({}, name="nothing")
    assert Worker(enough, session=True).run(burst=True)
    assert enough.count(state="complete") == 1

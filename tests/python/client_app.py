"""A board with handlers, for workers in other processes. $JOBBOARD_URL says where its server is.

Each handler writes what befalls it to the list `told`.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from datetime import datetime, timedelta
from typing import Any

import jobboard

board = jobboard.Board("board")
client = board.client


def tell(context: jobboard.Context, what: str) -> None:
    client.rpush("told", f"{context.id} {what}")


@board.handler("square")
def square(context: jobboard.Context, payload: int) -> int:
    return payload * payload


@board.handler("pid")
def pid(context: jobboard.Context, payload: Any) -> int:
    return os.getpid()


@board.handler("wait")
def wait(context: jobboard.Context, payload: int) -> str:
    """Works for `payload` ms, and looks at its context."""
    tell(context, "began")
    try:
        context.sleep(timedelta(milliseconds=payload))
    except jobboard.Stopped as reason:
        tell(context, type(reason).__name__)
        raise
    tell(context, "done")
    return "waited"


@board.handler("wait-async")
async def wait_async(context: jobboard.Context, payload: int) -> str:
    tell(context, "began")
    try:
        await asyncio.sleep(payload / 1000)
    except asyncio.CancelledError:
        tell(context, type(context._stop).__name__)
        raise
    tell(context, "done")
    return "waited"


@board.handler("deaf")
def deaf(context: jobboard.Context, payload: int) -> str:
    """Works for `payload` ms, and looks at nothing."""
    tell(context, "began")
    time.sleep(payload / 1000)
    tell(context, "done")
    return "waited"


def take(name: str) -> None:
    """Waits for something in this list; `blpop` would for as long as the socket's timeout."""
    while client.lpop(name) is None:
        time.sleep(0.01)


@board.handler("held-up")
def held_up(context: jobboard.Context, payload: Any) -> None:
    """Works until there is something in the list `go`."""
    tell(context, "began")
    take("go")
    tell(context, "done")


@board.handler("held-up-async")
async def held_up_async(context: jobboard.Context, payload: Any) -> None:
    await asyncio.to_thread(held_up, context, payload)


@board.handler("hit")
def hit(context: jobboard.Context, payload: Any) -> None:
    """The system gives SIGTERM to this thread, as it may do with one that was sent to the process."""
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    while not context.going_home:
        time.sleep(0.005)


@board.handler("heedful")
def heedful(context: jobboard.Context, payload: Any) -> None:
    """Works until its flags say that it has to stop."""
    tell(context, "began")
    while not context.cancelled and not context.lost:
        time.sleep(0.005)
        context.stage("at it")
    tell(context, "saw it")


@board.handler("die-once")
def die_once(context: jobboard.Context, payload: Any) -> str:
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@board.handler("fork-ended")
def fork_ended(context: jobboard.Context, payload: Any) -> int:
    """How a process that it forks ends at SIGTERM."""
    ended = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    ended.start()
    ended.terminate()
    ended.join(120)
    code = ended.exitcode
    ended.kill()
    return code or 0


@board.handler("fork-and-die")
def fork_and_die(context: jobboard.Context, payload: Any) -> None:
    """Is killed, while a process that it has forked lives on until there is something in the list `go`."""
    parent = os.getpid()
    if os.fork() == 0:
        os.kill(parent, signal.SIGKILL)
        take("go")
        os._exit(0)
    time.sleep(600)


class Unpicklable(dict[str, int]):
    def __reduce__(self) -> Any:
        raise TypeError("as asked")


@board.handler("unpicklable")
def unpicklable(context: jobboard.Context, payload: Any) -> Any:
    """Returns what JSON can write, and pickle can not."""
    found = Unpicklable(a=1)
    if payload == "next":
        return jobboard.Next("default", found, name="payload")
    return jobboard.Complete(found, force=True) if payload == "complete" else found


@board.handler("payload")
def its_payload(context: jobboard.Context, payload: Any) -> Any:
    return payload


@board.handler("exit-in-a-task")
async def exit_in_a_task(context: jobboard.Context, payload: Any) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    if payload == "alone":  # nobody awaits it
        context.task = asyncio.create_task(leave())  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
    elif payload == "stop":
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
    else:
        await asyncio.gather(leave(), asyncio.sleep(600))


@board.handler("leave-a-thread")
def leave_a_thread(context: jobboard.Context, payload: Any) -> None:
    """Leaves a thread behind that speaks of this job while the next one runs."""

    def speak() -> None:
        take("go")
        try:
            context.set_meta(by=context.id)
            context.save("saved")
            context.step("name", str, context.id)
            tell(context, "stored")
        except jobboard.Stopped as reason:
            tell(context, type(reason).__name__)
        client.rpush("spoken", "yes")

    threading.Thread(target=speak, daemon=True).start()


@board.handler("while-it-speaks")
def while_it_speaks(context: jobboard.Context, payload: Any) -> str:
    client.rpush("go", "on")
    take("spoken")
    return context.step("name", str, context.id)


@board.task("doubled", queue="default", retries=1)
def doubled(context: jobboard.Context, n: int, when: datetime) -> timedelta:
    tell(context, f"{n} {when.year}")
    return timedelta(seconds=2 * n)


@board.handler("late")
def late(context: jobboard.Context, payload: str) -> None:
    """Goes on as after a pause that was longer than its lease."""
    tell(context, "began")
    take("go")
    context._ours_until = 0.0
    try:
        if payload == "check":
            context.check()
        context.step("charge", tell, context, "charged")
    except jobboard.Stopped as reason:
        tell(context, type(reason).__name__)
        raise


@board.handler("late-async")
async def late_async(context: jobboard.Context, payload: str) -> None:
    tell(context, "began")
    await asyncio.to_thread(take, "go")
    context._ours_until = 0.0
    try:
        if payload == "check":
            context.check()
        await context.astep("charge", tell, context, "charged")
    except (jobboard.Stopped, asyncio.CancelledError):
        tell(context, type(context._stop).__name__)
        raise


@board.handler("kill-worker")
def kill_worker(context: jobboard.Context, payload: Any) -> None:
    """Ends the process that it runs in: with threads that of the worker."""
    os.kill(os.getpid(), signal.SIGKILL)


@board.handler("raise")
def raise_it(context: jobboard.Context, payload: Any) -> None:
    logging.getLogger("client_app").warning("about to raise")
    raise ValueError("as asked")


@board.handler("raise-long")
def raise_long(context: jobboard.Context, payload: Any) -> None:
    try:
        raise KeyError("y" * 100_000)
    except KeyError as error:
        raise ValueError("x" * 100_000) from error


@board.handler("report")
def report(context: jobboard.Context, payload: Any) -> str:
    context.progress(25, "begun")
    context.log("first line")
    context.set_meta(shard=3)
    context.log("second line")
    context.save({"from": 25})
    flushed = context.flush("5s")
    context.board.post(1, id="another", elsewhere=True)
    return f"{flushed} {context.meta.get('a')}"


def charged(context: jobboard.Context, payload: Any) -> tuple[str, int]:
    tell(context, "charge")
    return "paid", payload["rows"]


@board.handler("stepwise")
def stepwise(context: jobboard.Context, payload: Any) -> Any:
    """Charges once, and works off rows; the n-th try fails at the row that stands there in `fail_at`."""
    receipt = context.step("charge", charged, context, payload)
    fails = dict(enumerate(payload["fail_at"], 1))
    for row in context.iterate("rows", range(payload["rows"])):
        tell(context, f"row {row}")
        if fails.get(context.attempt) == row:
            raise jobboard.Retry(delay="0s")
    return {"receipt": receipt, "attempts": context.attempt}


@board.handler("stepwise-async")
async def stepwise_async(context: jobboard.Context, payload: Any) -> Any:
    receipt = await context.astep("charge", charged, context, payload)
    fails = dict(enumerate(payload["fail_at"], 1))
    async for row in context.aiterate("rows", range(payload["rows"])):
        tell(context, f"row {row}")
        if fails.get(context.attempt) == row:
            raise jobboard.Retry(delay="0s")
    return {"receipt": receipt, "attempts": context.attempt}


@board.handler("writes")
def writes(context: jobboard.Context, payload: Any) -> None:
    """Writes these chunks, or in a later attempt a word; the first attempt of `again` fails."""
    if context.attempt > 1:
        return context.output("again")
    for chunk in payload:
        context.output(chunk)
    if context.id == "again":
        raise jobboard.Retry("it broke off", delay="0s")


@board.handler("writes-async")
async def writes_async(context: jobboard.Context, payload: Any) -> None:
    writes(context, payload)


class Silent(Exception):
    """Has nothing to say of itself."""

    def __str__(self) -> str:
        raise LookupError("no text")


@board.handler("odd")
def odd(context: jobboard.Context, way: str) -> Any:
    """Ends in a way that cannot be sent as it is, or says something that cannot."""
    if way == "silent":
        raise Silent
    if way == "message":
        raise jobboard.Retry(0)  # type: ignore[arg-type]
    if way == "changed":
        error = jobboard.Retry("busy")
        error.message = 0  # type: ignore[assignment]
        raise error
    if way == "next":
        return jobboard.Next("\ud800", name="elsewhere")
    if way == "late":
        found = jobboard.Next("second", name="elsewhere")
        found.priority = object()  # type: ignore[assignment]
        return found
    if way == "meta":
        context.set_meta(text="\ud800")
        return context.set_meta(other="kept")
    if way == "step":
        return context.step("\ud800", int)
    return "done"


@board.handler("odd-async")
async def odd_async(context: jobboard.Context, way: str) -> Any:
    return odd(context, way) if way != "step" else await context.astep("\ud800", int)


@board.handler("approval")
def approval(context: jobboard.Context, payload: Any) -> Any:
    """Drafts once, waits for a person, and sends."""
    context.step("draft", tell, context, "draft")
    answer = context.wait_for("approved", within=payload["within"])
    if answer is None:
        return None
    context.step("send", tell, context, "sent")
    return [answer.value, answer.sender]


@board.handler("approval-async")
async def approval_async(context: jobboard.Context, payload: Any) -> Any:
    await context.astep("draft", tell, context, "draft")
    answer = await context.await_for("approved", within=payload["within"])
    if answer is None:
        return None
    await context.astep("send", tell, context, "sent")
    return [answer.value, answer.sender]


@board.handler("part")
def part(context: jobboard.Context, payload: Any) -> int:
    return payload * payload


@board.handler("batch")
def batch(context: jobboard.Context, payload: Any) -> Any:
    """Posts its parts once, waits for them, and adds up."""
    context.step("posted", tell, context, "posted")
    ids = context.step("parts", post_parts, context, payload["parts"])
    found = context.wait_for_children()
    return [*found, [context.board.get(id).result for id in ids]]


@board.handler("batch-async")
async def batch_async(context: jobboard.Context, payload: Any) -> Any:
    await context.astep("posted", tell, context, "posted")
    ids = await context.astep("parts", post_parts, context, payload["parts"])
    found = await context.await_for_children()
    return [*found, [context.board.get(id).result for id in ids]]


def post_parts(context: jobboard.Context, count: int) -> list[str]:
    return context.board.post_many(list(range(count)), name="part", parent=context.id, retain="1m")

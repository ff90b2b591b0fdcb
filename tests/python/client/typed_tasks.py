"""What mypy knows of tasks: test_tasks.py has it check this file."""

from __future__ import annotations

from datetime import datetime
from typing import reveal_type

from jobboard import AsyncBoard, Board, Context, chain, group

board = Board("mails")


@board.task("mail", retries=3, backoff=("10s", "1h"), timeout="5m", queue="mails", unique=["to"])
def mail(to: str, copies: int = 0) -> datetime:
    return datetime.now()


@board.task()
async def resize(context: Context, url: str) -> int:
    return len(url)


def charge(account: str, cents: int) -> float:
    return cents / 100


async def fetch(url: str) -> bytes:
    return url.encode()


@board.task()
def pay(context: Context, account: str) -> None:
    reveal_type(context.step("pay", charge, account, cents=5))  # is: float
    context.step("pay", charge, account)  # error: call-arg
    context.step("pay", charge, 5, cents=5)  # error: arg-type
    context.step("count", len, 5)  # error: arg-type
    reveal_type(context.step("draft", lambda: "text"))  # is: str
    signal = context.wait_for("approved")
    reveal_type(signal)  # is: tuple[Any, int, str | None, fallback=jobboard.jobs.Signal]
    reveal_type([*context.wait_for(["a", "b"], any=True)])  # is: list[str]
    print(context.wait_for("approved", within="2d").value)  # error: union-attr
    context.wait_for("approved", within=5)  # error: call-overload


@board.task()
async def pay_later(context: Context) -> None:
    reveal_type(await context.astep("get", fetch, "https://…"))  # is: bytes
    reveal_type(await context.astep("pay", charge, "a", 5))  # is: float
    await context.astep("get", fetch, 5)  # error: call-overload
    reveal_type(
        await context.await_for("a", within="1h")
    )  # is: tuple[Any, int, str | None, fallback=jobboard.jobs.Signal] | None


@board.task(retrys=3)  # error: call-arg
def misspelt() -> None: ...


@board.task(timeout=5)  # error: arg-type
def unitless() -> None: ...


reveal_type(mail.post("ann", copies=2))  # is: str
reveal_type(mail.result("id"))  # is: datetime.datetime
reveal_type(resize.result("id"))  # is: int
reveal_type(mail("ann"))  # is: datetime.datetime
mail.post()  # error: call-arg
mail.post(5)  # error: arg-type
mail.post(too="ann")  # error: call-arg
mail.using(delay="1h", priority=3, id="a").post("ann")
mail.using(delay=5).post("ann")  # error: call-overload
mail.using(dellay="5s")  # error: call-overload
reveal_type(mail.using(nx=True, id="a").post("ann"))  # is: str | None
mail.using(nx=True, id="a").post(5)  # error: arg-type
reveal_type(mail.using(nx=True).result("id"))  # is: datetime.datetime
mail.using(priority=1).post(too="ann")  # error: call-arg
resize.post(url="a")
resize.post(context="a", url="b")  # error: call-arg
mail.schedule("0 2 * * *", tz="Europe/Berlin", arguments={"to": "ann"})
mail.schedule(every=5)  # error: arg-type
board.flow(chain(resize.job("a"), group(mail.job("ann"), mail.job("bob"))))
resize.job(5)  # error: arg-type


async def in_asyncio(other: AsyncBoard) -> None:
    @other.task("later")
    def later(n: int) -> str:
        return str(n)

    reveal_type(await later.post(1))  # is: str
    reveal_type(await later.result("id"))  # is: str
    await later.post("1")  # error: arg-type
    reveal_type(await later.using(nx=True, id="a").post(1))  # is: str | None
    reveal_type(await mail.on(other).result("id"))  # is: datetime.datetime
    await mail.on(other).using(delay="1h").post(to=1)  # error: arg-type
    reveal_type(later.on(board).post(n=1))  # is: str
    later.on(board).post("1")  # error: arg-type

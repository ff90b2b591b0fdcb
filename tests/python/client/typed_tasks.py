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
mail.using(delay=5).post("ann")  # error: arg-type
mail.using(dellay="5s")  # error: call-arg
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
    reveal_type(await mail.on(other).result("id"))  # is: datetime.datetime
    await mail.on(other).using(delay="1h").post(to=1)  # error: arg-type
    reveal_type(later.on(board).post(n=1))  # is: str
    later.on(board).post("1")  # error: arg-type

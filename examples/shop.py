"""A whole application: mail with back-off, a nightly report, an API with a rate limit, three tasks in a row,
progress for the user, and a cancel from another process.

    export JOBBOARD_URL=redis://127.0.0.1:6379
    jobboard worker shop:board --threads 4          # in this folder
    python shop.py setup                            # the schedule and the rate limit; again does no harm
    python shop.py mail ann                         # fails at first, and is tried again
    python shop.py quotes EUR USD GBP               # at most 5 calls a second, however many workers
    python shop.py photo cat.png                    # fetch, shrink, publish
    python shop.py export 5                         # prints an id, and its progress
    python shop.py cancel ID                        # from another terminal
"""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from decimal import Decimal

from jobboard import Board, Context, JobFailed, Next

board = Board("shop")


@board.task(queue="mails", retries=5, backoff=("200ms", "1h"), timeout="1m", unique=["to"])
def mail(context: Context, to: str, subject: str = "Welcome") -> str:
    if context.attempt == 1:
        raise ConnectionError("451 try again later")
    return f"{subject} sent to {to} at try {context.attempt}"


@board.task(retries=2)
def report(day: datetime | None = None) -> str:
    return f"report of {day or datetime.now(timezone.utc):%Y-%m-%d}"


@board.task(queue="quotes", expire="1m")
def quote(currency: str) -> Decimal:
    return Decimal(len(currency)) / 2  # asks the API


@board.task()
def fetch(url: str) -> Next:
    return shrink.next(url, size=len(url) * 1000)


@board.task(queue="photos")
def shrink(url: str, size: int) -> Next:
    return publish.next(url, size // 10)


@board.task(queue="web")
def publish(url: str, size: int) -> str:
    return f"{url}: published with {size} bytes"


@board.task(timeout="10m")
def export(context: Context, rows: int) -> str:
    for row in range(rows):
        context.progress(100 * row / rows, f"row {row + 1} of {rows}")
        context.sleep("100ms")  # ends at once when somebody cancels
    return f"{rows} rows"


def setup() -> None:
    report.schedule("0 2 * * *", tz="Europe/Berlin")
    board.settings_set({"rate": 5, "burst": 1}, queue="quotes")


def show(id: str) -> None:
    """Follows a job, as a page for the user would."""
    print(id, flush=True)
    for job in board.watch(id):
        if job.progress is not None and not job.is_ended:
            print(f"{job.progress:.0f} % {job.stage}", flush=True)
    try:
        print(board.result(id))
    except JobFailed as error:
        print(error.state)


def main(verb: str, *words: str) -> None:
    match verb:
        case "setup":
            setup()
        case "mail":
            print(mail.result(mail.post(words[0])))
        case "quotes":
            ids = quote.post_many({"currency": one} for one in words)
            print(sum(quote.result(id) for id in ids))
        case "photo":
            print(publish.result(fetch.post(words[0])))
        case "export":
            show(export.post(int(words[0])))
        case "cancel":
            board.cancel(words[0])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["help"])

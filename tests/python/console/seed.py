"""Boards with something of everything, for tests and screenshots."""

from __future__ import annotations

import json
import random
import time

from harness import Board, wait_until

HOUR = 3_600_000


def shop(board: Board) -> None:
    """A board as a shop might have it: queues, groups, limits, failures, schedules, a flow, workers."""
    chance = random.Random(7)
    board.set(retain_complete=HOUR, events="all")
    board.set(limit="payments-api", concurrency=4, rate=50, rate_period=1000, burst=20)
    board.set(queue="payments", limits=["payments-api"], concurrency=3)
    board.set(queue="mail", group="acme", weight=3)
    for number in range(60):
        group = ["acme", "initech", "umbrella"][number % 3]
        payload = json.dumps({"to": f"user{number}@example.com", "template": "receipt"})
        board.post(
            payload, queue="mail", name="send-receipt", group=group, user=f"u-{number % 7}",
            tags=["receipts"], priority=chance.randint(-2, 9),
        )  # fmt: skip
    for number in range(24):
        board.post(f"order {number}", queue="payments", name="charge-card", tags=["orders"], retries=2)
    board.post_many(8, queue="reports", name="daily-report", delay=HOUR)
    for worker, queue, count in [
        ("mailer-1", "mail", 14),
        ("mailer-2", "mail", 9),
        ("payer-1", "payments", 3),
    ]:
        board.worker("REGISTER", worker, role=queue, meta={"host": "web-1", "pid": "4711"}, for_=HOUR)
        for job in board.claim(worker, queues=[queue], count=count, lease=HOUR):
            end(board, worker, job, chance.random())
    board.client.execute_command(
        "JOB.SCHEDULE", "SET", board.key, "nightly", "{}", "CRON", "30 2 * * *", "TZ", "Europe/Berlin",
        "QUEUE", "reports", "NAME", "daily-report",
    )  # fmt: skip
    board.client.execute_command(
        "JOB.SCHEDULE", "SET", board.key, "sync", "{}", "EVERY", 900_000, "QUEUE", "sync"
    )
    flow(board)
    board.claim("payer-1", queues=["payments"], count=2, lease=HOUR)
    board.pause(queue="reports")


def end(board: Board, worker: str, job: dict, luck: float) -> None:
    """Consumes, fails or keeps a claimed job."""
    if luck < 0.6:
        board.consume(worker, job["id"], token=job["token"], result='{"sent": true}')
    elif luck < 0.75:
        board.fail(worker, job["id"], "SMTPError", "451 try again later", token=job["token"], noretry=True)
    elif luck < 0.82:
        board.fail(worker, job["id"], "Timeout", "no answer in 30 s", token=job["token"], retry=HOUR)
    else:
        board.heartbeat(worker, job["id"], token=job["token"], progress=chance_of(luck), stage="rendering")


def chance_of(luck: float) -> int:
    return int(luck * 100)


def flow(board: Board) -> None:
    """`order-42`: parts that wait for each other, and for whose last one the mail waits."""
    board.post("order 42", id="order-42", name="order", queue="orders", tags=["orders", "vip"], user="u-42")
    board.post("reserve", id="reserve-42", name="reserve", queue="orders", parent="order-42", retain=HOUR)
    board.post(
        "charge", id="charge-42", name="charge", queue="orders", parent="order-42", after=["reserve-42"]
    )
    board.post("pack", id="pack-42", name="pack", queue="orders", parent="order-42", after=["reserve-42"])
    board.post(
        "ship", id="ship-42", name="ship", queue="orders", parent="order-42", after=["charge-42", "pack-42"]
    )
    board.post("mail", id="mail-42", name="notify", queue="orders", after=["ship-42"])
    token = board.claim_one("packer-1", id="reserve-42", lease=HOUR)["token"]
    board.heartbeat(
        "packer-1", "reserve-42", token=token, progress=40, stage="counting shelves", log="shelf 7"
    )
    board.consume("packer-1", "reserve-42", token=token, result="shelf 7")
    token = board.claim_one("packer-1", id="pack-42", lease=HOUR)["token"]
    board.heartbeat("packer-1", "pack-42", token=token, progress=25, stage="looking for a box")


TRACE = """Traceback (most recent call last):
  File "/app/shop/payments.py", line 88, in charge
    answer = bank.charge(card, amount)
  File "/app/shop/bank.py", line 31, in charge
    raise CardDeclined(f"card ending in {card[-4:]} was declined")
shop.bank.CardDeclined: card ending in 4242 was declined
"""


def approval(board: Board) -> None:
    """`refund-7`: two attempts, steps, log, output, children, a signal that came and one that is missing."""
    board.set(output_bytes=20_000)
    board.set(queue="refunds", backoff_base=1, jitter=0)
    payload = json.dumps({"order": {"id": 4711, "amount": 1990}, "customer": "ann@example.com"})
    board.post(payload, id="refund-7", name="refund", queue="refunds", user="ann", retries=3, tags=["vip"])
    token = board.claim_one("agent-1", id="refund-7", lease=HOUR)["token"]
    board.step("agent-1", "refund-7", "read the order", '{"order": 4711, "amount": 1990}', token=token)
    board.heartbeat("agent-1", "refund-7", token=token, log="order 4711 found, 19.90 EUR")
    time.sleep(0.3)
    board.fail("agent-1", "refund-7", "ModelTimeout", "no answer in 30 s", token=token)
    wait_until(lambda: board.get("refund-7")["state"] == "ready")
    token = board.claim_one("agent-2", id="refund-7", lease=HOUR)["token"]
    board.mpost(
        ["{}"] * 3, ids=["scan-1", "scan-2", "scan-3"], parent="refund-7", name="scan", queue="scans",
        retain=HOUR,
    )  # fmt: skip
    for id, worker in [("scan-1", "scanner-1"), ("scan-2", "scanner-2")]:
        part = board.claim_one(worker, id=id, lease=HOUR)["token"]
        time.sleep(0.15)
        if id == "scan-2":
            board.fail(worker, id, "ScanError", "page 2 is empty", token=part, noretry=True)
        else:
            board.consume(worker, id, token=part, result='{"clean": true}')
    board.heartbeat(
        "agent-2", "refund-7", token=token, stage="writing a draft", progress=60,
        output=(1, "Dear Ann,\n\nwe are sorry that your order came late.\n"),
    )  # fmt: skip
    time.sleep(0.3)
    board.heartbeat("agent-2", "refund-7", token=token, output=(2, "You get 19.90 EUR back.\n"))
    board.step("agent-2", "refund-7", "draft", '{"text": "Dear Ann, …"}', token=token)
    board.signal("amount-checked", "refund-7", value="true", sender="bob")
    board.wait_for("agent-2", "refund-7", ["approved", "amount-checked"], token=token, within="2d")


def failures(board: Board) -> None:
    """Failures, many of them the same; `charge-7` has a traceback. Runs of the schedule `sync`."""
    for number in range(40):
        id = f"charge-{number}"
        payload = json.dumps({"order": 4000 + number, "amount": 1990, "card": "tok_4242"})
        board.post(payload, id=id, name="charge-card", queue="cards")
        job = board.claim_one("payer-2", id=id, lease=HOUR)
        if number % 3:
            board.heartbeat("payer-2", id, token=job["token"], log=TRACE)
            message = f"card ending in {4242 + number} was declined"
            board.fail("payer-2", id, "CardDeclined", message, token=job["token"], noretry=True)
        else:
            board.fail("payer-2", id, "ConnectionError", f"bank node {number} did not answer in 30 s",
                       token=job["token"], noretry=True)  # fmt: skip
    for number in range(1, 6):
        board.client.execute_command("JOB.SCHEDULE", "RUN", board.key, "sync")
        job = board.claim_one("syncer-1", id=f"@sync@{number}", lease=HOUR)
        if number == 4:
            board.fail(
                "syncer-1", job["id"], "Timeout", "catalogue took 60 s", token=job["token"], noretry=True
            )
        else:
            board.consume("syncer-1", job["id"], token=job["token"])

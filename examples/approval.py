"""A job that drafts an answer, waits for a person, and sends it.

    python examples/approval.py --work              # a worker
    python examples/approval.py "refund 20 for ann" # posts one, prints its id
    python examples/approval.py --inbox             # what waits for an approval
    jobboard signal approvals approved <id> --value true --sender eve

While it waits the job takes no worker and no slot; kill the worker and start it again. Without an answer
within two days it is not sent.
"""

from __future__ import annotations

import argparse

from jobboard import Board, Context, Worker

parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
parser.add_argument("--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)")
parser.add_argument("--work", action="store_true", help="run a worker until nothing is left to do")
parser.add_argument("--inbox", action="store_true", help="what waits for an approval")
parser.add_argument("--within", default="2d", help="how long to wait for a person")
parser.add_argument("request", nargs="?")
given = parser.parse_args()
board = Board("approvals", None if given.port is None else f"redis://127.0.0.1:{given.port}")


def draft(request: str) -> str:
    """Stands for the call of a model: dear, so it is done once."""
    print(f"drafting: {request}")
    return f"Dear customer, about {request!r}: yes."


def send(letter: str, key: str) -> str:
    print(f"sending {key}: {letter}")
    return f"sent {key}"


@board.task(retain="1h")
def answer(context: Context, request: str, within: str) -> str | None:
    letter = context.step("draft", draft, request)
    context.stage("waits for a person")
    approved = context.wait_for("approved", within=within)
    if approved is None or not approved.value:
        return None
    return context.step("send", send, letter, key=context.id)


def main() -> None:
    if given.request:
        print(answer.post(given.request, given.within))
    if given.inbox:
        for job in board.list(awaits="approved", fields=["id", "payload", "steps"]):
            if job.steps:
                print(f"{job.id}: {job.steps['draft'].value}")
    if given.work:
        Worker(board).run(burst=True)


if __name__ == "__main__":
    main()

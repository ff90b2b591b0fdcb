"""What is said of a server that goes and comes, whichever thread tells of it first."""

from __future__ import annotations

import logging
import time

import pytest
from jobboard.worker.outage import Outage

GONE, BACK = "the server does not answer", "the server is back"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["gone 1", "back 2"], [GONE, BACK]),
        (["gone 1", "gone 2", "back 3", "back 4"], [GONE, BACK]),
        (["gone 2", "back 3", "gone 1"], [GONE, BACK]),
        (["gone 2", "back 1", "back 3"], [GONE, BACK]),
        (["back 2", "gone 1"], []),
        (["gone 1", "back 2", "gone 3"], [GONE, BACK, GONE]),
    ],
    ids=", ".join,
)
def test_what_was_sent_last_counts(caplog, told, said) -> None:
    """A thread that tells of an earlier command after another has told of a later one changes nothing."""
    outage, begun = Outage(logging.getLogger("jobboard.worker"), "w"), time.monotonic()
    for one in told:
        how, second = one.split()
        if how == "gone":
            outage.gone(ConnectionError("refused"), "claiming", begun + int(second))
        else:
            outage.back(begun + int(second))
    assert [next(text for text in (GONE, BACK) if text in line) for line in caplog.messages] == said

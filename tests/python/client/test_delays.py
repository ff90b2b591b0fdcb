"""Delays that the server refuses: it takes none of more than 34 years."""

from __future__ import annotations

import pytest
from jobboard import Abandon, RateLimited, Retry, Worker

LONG = "36500d"
ENDS = {
    "retry": (Retry("busy", delay=LONG), "scheduled", "Retry"),
    "abandon": (Abandon("busy", delay=LONG), "complete", None),
    "rate": (RateLimited("tokens", LONG), "complete", None),
}


@pytest.mark.parametrize("error, state, kind", ENDS.values(), ids=ENDS.keys())
def test_a_try_ends_without_a_delay_that_the_server_refuses(jobs, error, state, kind) -> None:
    @jobs.task("x", retries=1, backoff="1h")
    def task(context) -> None:
        if context.attempt == 1:
            raise error

    id = task.using(retain="1h").post()
    Worker(jobs).run(burst=True)
    job = jobs.get(id)
    assert (job.state, job.kind) == (state, kind)

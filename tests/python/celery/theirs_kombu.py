"""kombu's own tests of a transport, over a board: theirs.py runs them beside kombu's folder `t`.

$JOBBOARD_URL says where the server is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import jobboard.celery  # noqa: F401 - kombu alone does not look for it
import kombu
import pytest
from t.integration import common, test_redis  # type: ignore[import-not-found]

PLACE = os.environ["JOBBOARD_URL"].partition("://")[2]


@pytest.fixture(params=[{}, {"queue_order_strategy": "round_robin"}], ids=["best", "rotate"])
def connection(request: pytest.FixtureRequest) -> kombu.Connection:
    return kombu.Connection(f"jobboard://{PLACE}", transport_options=request.param)


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return kombu.Connection("jobboard://127.0.0.1:1")


@pytest.fixture
def failover_connection() -> kombu.Connection:
    return kombu.Connection(
        f"jobboard://127.0.0.1:1;jobboard://{PLACE}", transport_options={"max_retries": 2}
    )


@pytest.fixture(autouse=True)
def empty(connection: kombu.Connection) -> Iterator[None]:
    """Each test of kombu's begins with an empty broker."""
    with connection.clone() as one:
        one.connect().redis.flushdb()
    yield


class test_basic_functionality(common.BasicFunctionality):
    pass


class test_exchange_types(common.BaseExchangeTypes):
    pass


class test_time_to_live(common.BaseTimeToLive):
    pass


class test_priority(test_redis.test_RedisPriority):
    """Those of kombu for its transport of Redis: smaller numbers first, and one message by drain_events."""


class test_message(common.BaseMessage):
    pass


class test_event_loop(common.BaseEventLoop):
    pass


class test_failover(common.BaseFailover):
    pass

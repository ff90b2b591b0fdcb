"""The result backend of `jobboard://`: Celery's for Redis, on the server of the board.

A result of Celery is more than one of a job: a state that changes while the task runs, parts of a chord,
saved groups, each with a time to live. Celery keeps them in keys of their own, tells of them by Pub/Sub, and
counts the parts of a chord there. All of that needs nothing but a Redis or Valkey server, and the board is on
one. Results of older tasks are found again when the database is the same.
"""

from __future__ import annotations

from typing import Any

import redis
from celery.backends.redis import RedisBackend
from kombu.utils.url import maybe_sanitize_url

from . import addresses

URL = "jobboard://127.0.0.1:6379/0"


class ResultBackend(RedisBackend):
    """`result_backend = "jobboard://host:6379/0"`; settings `redis_…` count here as well."""

    def __init__(self, *words: Any, url: str | None = None, **options: Any) -> None:
        super().__init__(*words, **options)
        self.url = url or URL
        own = {name: self.connparams[name] for name in addresses.CLIENT_OPTIONS if self.connparams.get(name)}
        if "connection_class" in self.connparams:  # redis_backend_use_ssl
            own.update({name: value for name, value in self.connparams.items() if name.startswith("ssl_")})
        self._own = own
        self._address = addresses.of_url(self.url)
        if "connection_class" in self.connparams and self._address.url.startswith("redis://"):
            self._address = self._address._replace(url=f"rediss{self._address.url.removeprefix('redis')}")

    def _create_client(self, **_: Any) -> redis.Redis:
        return self._address.client(self._own)

    def as_uri(self, include_password: bool = False) -> str:
        shown: str = self.url if include_password else maybe_sanitize_url(self.url)
        return shown

    def __reduce__(self, args: Any = (), kwargs: Any = None) -> Any:
        return super().__reduce__(args, {**(kwargs or {}), "url": self.url})

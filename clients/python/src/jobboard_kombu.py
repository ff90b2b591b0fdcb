"""Tells kombu, when it starts, where the transport of `jobboard://` is.

kombu has no entry points for transports; it loads those for serializers whenever it is imported. This one
names a serializer that serializes nothing, and is a module of its own so that kombu need not import the rest.
"""

from __future__ import annotations

from typing import Any

SERIALIZER: tuple[None, None, str] = (None, None, "application/x-jobboard")


def __getattr__(name: str) -> Any:
    if name != "serializer":
        raise AttributeError(name)
    from kombu.transport import TRANSPORT_ALIASES

    TRANSPORT_ALIASES["jobboard"] = "jobboard.celery.transport:Transport"
    return SERIALIZER

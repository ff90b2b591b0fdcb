"""How payloads and results become bytes: JSON, msgpack, or as they are. layers.py puts more around them."""

from __future__ import annotations

import json
from typing import Any, Protocol

import msgspec

from .values import builtins, encodable, has_nan


class PayloadError(ValueError):
    """A payload or result cannot be encoded, or is not what the codec understands."""


class Codec(Protocol):
    """Makes values bytes, and bytes values. Both raise `PayloadError`."""

    name: str

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class Json:
    """JSON in UTF-8. The default: every language and the console can read it.

    Times become text as in RFC 3339, UUID, Decimal and Enum theirs, bytes base64, dataclasses and pydantic
    models objects. The annotations of a task turn them back.
    """

    name = "json"

    def encode(self, value: Any) -> bytes:
        try:
            data = msgspec.json.encode(value, enc_hook=encodable)
            lost = b"null" in data and has_nan(builtins(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(f"no JSON: {error}") from error
        if lost:
            raise PayloadError("no JSON: it has neither NaN nor infinity")
        return data

    def decode(self, data: bytes) -> Any:
        try:
            return msgspec.json.decode(data)
        except (ValueError, RecursionError):
            return self._leniently(data)

    def _leniently(self, data: bytes) -> Any:
        """What others write and msgspec does not take: NaN, halves of surrogate pairs."""
        try:
            return json.loads(bytes(data).decode("utf-8", "strict"))
        except UnicodeDecodeError:
            raise PayloadError(
                "no JSON: it is no text in UTF-8; payload_bytes and result_bytes have it as it is, so has "
                "a board with codec='raw'"
            ) from None
        except (ValueError, RecursionError) as error:
            raise PayloadError(f"no JSON: {error}") from error


class Msgpack:
    """msgpack: smaller than JSON, and knows bytes and times."""

    name = "msgpack"

    def encode(self, value: Any) -> bytes:
        try:
            return msgspec.msgpack.encode(value, enc_hook=encodable)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise PayloadError(f"no msgpack: {error}") from error

    def decode(self, data: bytes) -> Any:
        try:
            return msgspec.msgpack.decode(data)
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(f"no msgpack: {error}") from error


class Raw:
    """Bytes as they are; text goes in as UTF-8."""

    name = "raw"

    def encode(self, value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise PayloadError(f"raw payloads are bytes or text, not {type(value).__name__}")

    def decode(self, data: bytes) -> Any:
        return data


CODECS: dict[str, type[Codec]] = {"json": Json, "msgpack": Msgpack, "raw": Raw}


def find(codec: str | Codec) -> Codec:
    """The codec of a name, or the one given."""
    if not isinstance(codec, str):
        if isinstance(codec, type) or not all(hasattr(codec, one) for one in ("encode", "decode")):
            raise TypeError(f"codec is {', '.join(CODECS)} or an object of a codec, not {codec!r:.100}")
        return codec
    if codec not in CODECS:
        raise ValueError(f"codec must be one of {', '.join(CODECS)} or an object, not {codec!r}")
    return CODECS[codec]()

"""How payloads and results become bytes: JSON, msgpack, or as they are."""

from __future__ import annotations

import json
from typing import Any, Protocol, Union


class PayloadError(ValueError):
    """A payload or result cannot be encoded, or is not what the codec understands."""


class Codec(Protocol):
    """Makes values bytes, and bytes values. Both raise `PayloadError`."""

    name: str

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class Json:
    """JSON in UTF-8. The default: every language and the console can read it."""

    name = "json"

    def encode(self, value: Any) -> bytes:
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise PayloadError(f"no JSON: {error}") from error

    def decode(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError as error:
            raise PayloadError(f"no JSON: {error}") from error


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


class Msgpack:
    """msgpack: smaller than JSON, and knows bytes. Needs the extra `msgpack`."""

    name = "msgpack"

    def __init__(self) -> None:
        try:
            import msgpack  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError("pip install 'jobboard[msgpack]'") from error
        self._pack, self._unpack = msgpack.packb, msgpack.unpackb

    def __reduce__(self) -> Any:
        return (Msgpack, ())

    def encode(self, value: Any) -> bytes:
        try:
            return bytes(self._pack(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise PayloadError(f"no msgpack: {error}") from error

    def decode(self, data: bytes) -> Any:
        try:
            return self._unpack(data)
        except Exception as error:  # its own exceptions have no common class but this
            raise PayloadError(f"no msgpack: {error}") from error


CODECS: dict[str, type[Codec]] = {"json": Json, "msgpack": Msgpack, "raw": Raw}


def find(codec: Union[str, Codec]) -> Codec:
    """The codec of a name, or the one given."""
    if not isinstance(codec, str):
        return codec
    if codec not in CODECS:
        raise ValueError(f"codec must be one of {', '.join(CODECS)} or an object, not {codec!r}")
    return CODECS[codec]()

"""Layers around a codec: payloads and results that are compressed, encrypted, or stored elsewhere.

A layer puts a line before what it makes: `\\xc1`, its name, fields, and a line end. JSON, UTF-8 and msgpack
never begin with that byte. docs/guides/payloads.md says it for all languages. What has no such line is read
as it is, so a layer may come to a board that has jobs; `Encrypted` alone refuses it.

    Board("mails", codec=Offloaded(Encrypted(Compressed("json"), keys={"2026": key}), Files("/mnt/payloads")))
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

from .codecs import Codec, PayloadError, find

MARK = b"\xc1"
_LINE = re.compile(rb"\xc1([a-z0-9-]+)((?: [a-z0-9]+=[^ \n]*)*)\n")


class Layer:
    """A codec around another one."""

    layer = ""

    def __init__(self, codec: str | Codec) -> None:
        self.inner = find(codec)
        self.name = f"{self.layer}+{self.inner.name}"

    def encode(self, value: Any) -> bytes:
        data = self.inner.encode(value)
        ours = data.startswith(MARK + self.layer.encode())
        found = self.wrap(data, must=ours)
        return data if found is None else found

    def decode(self, data: bytes) -> Any:
        found = _LINE.match(data)
        if found is None or found[1] != self.layer.encode():
            return self.inner.decode(self.plain(data))
        try:
            fields = dict(part.split("=", 1) for part in found[2].decode().split())
            inner = self.unwrap(fields, found[0], data[found.end() :])
        except PayloadError:
            raise
        except (KeyError, ValueError) as error:
            raise PayloadError(f"the line of {self.layer} is wrong: {error!r}") from error
        return self.inner.decode(inner)

    def wrap(self, data: bytes, must: bool) -> bytes | None:
        """The whole, or None, unless it must be wrapped because it begins as if it were."""
        raise NotImplementedError

    def unwrap(self, fields: Mapping[str, str], line: bytes, body: bytes) -> bytes:
        """Undoes it."""
        raise NotImplementedError

    def plain(self, data: bytes) -> bytes:
        """What has no line of this layer."""
        return data

    def line(self, **fields: Any) -> bytes:
        told = "".join(f" {name}={quote(str(value))}" for name, value in fields.items())
        return MARK + f"{self.layer}{told}\n".encode()


class Compressed(Layer):
    """Compresses with zlib what is longer than `over` bytes and becomes shorter. What would have more than
    `most` bytes again is refused.
    """

    layer = "zlib"

    def __init__(self, codec: str | Codec = "json", *, over: int = 1000, most: int = 512 << 20) -> None:
        super().__init__(codec)
        self.over, self.most = over, most

    def wrap(self, data: bytes, must: bool) -> bytes | None:
        if len(data) <= self.over and not must:
            return None
        found = self.line(size=len(data)) + zlib.compress(data)
        return found if must or len(found) < len(data) else None

    def unwrap(self, fields: Mapping[str, str], line: bytes, body: bytes) -> bytes:
        size = int(fields["size"])
        if size > self.most:
            raise PayloadError(
                f"it would be {size} bytes long: Compressed(…, most={self.most}) allows no more"
            )
        try:
            reader = zlib.decompressobj()
            found = reader.decompress(body, size + 1)
        except zlib.error as error:
            raise PayloadError(f"no zlib: {error}") from error
        if len(found) != size or not reader.eof:
            raise PayloadError(f"no zlib: it is not the {size} bytes that it says")
        return found


class Encrypted(Layer):
    """Encrypts with AES-256-GCM. `keys` are 32 bytes each, by names: the first encrypts, all decrypt. What is
    not encrypted is refused, since anybody could have written it, unless `plain` allows it while a board
    changes over. Needs the extra `crypto`.
    """

    layer = "aes-256-gcm"

    def __init__(
        self, codec: str | Codec = "json", *, keys: Mapping[str, bytes], plain: bool = False
    ) -> None:
        super().__init__(codec)
        _cipher(bytes(32))  # raises here when there is none
        self._keys, self._plain = dict(keys), plain
        if not keys:
            raise ValueError("keys has at least one key: {'2026': os.urandom(32)}")
        for name, key in keys.items():
            if len(key) != 32:
                raise ValueError(f"the key {name!r} has {len(key)} bytes, not 32: os.urandom(32) makes one")

    def wrap(self, data: bytes, must: bool) -> bytes:
        name, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(12)
        line = self.line(key=name, nonce=nonce.hex())
        return line + bytes(_cipher(key).encrypt(nonce, data, line))

    def unwrap(self, fields: Mapping[str, str], line: bytes, body: bytes) -> bytes:
        name = unquote(fields["key"])
        if name not in self._keys:
            raise PayloadError(f"it is encrypted with the key {name!r}, and keys has {', '.join(self._keys)}")
        try:
            return bytes(_cipher(self._keys[name]).decrypt(bytes.fromhex(fields["nonce"]), body, line))
        except Exception as error:  # its own has no class but this; it says nothing
            raise PayloadError(
                f"it was not encrypted with this key {name!r}, or was changed since"
            ) from error

    def plain(self, data: bytes) -> bytes:
        if not self._plain:
            raise PayloadError("it is not encrypted: Encrypted(…, plain=True) reads such, too")
        return data


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ImportError("pip install 'jobboard[crypto]'") from error
    return AESGCM(key)


class Store(Protocol):
    """Where large payloads are. It keeps them for as long as jobs may need them."""

    def put(self, data: bytes) -> str:
        """Stores them, and returns a name for `get`; the same for the same data, so that posting again stores
        nothing new.
        """

    def get(self, name: str) -> bytes:
        """Raises LookupError when it is not there, and what it likes when the store cannot be reached."""


class Offloaded(Layer):
    """Stores what is longer than `over` bytes in a store, and leaves its name in the job.

    A payload that is gone fails its job for good; a store that cannot be reached fails the try alone.
    """

    layer = "stored"

    def __init__(self, codec: str | Codec, store: Store, *, over: int = 100_000) -> None:
        super().__init__(codec)
        self.store, self.over = store, over

    def wrap(self, data: bytes, must: bool) -> bytes | None:
        if len(data) <= self.over and not must:
            return None
        return self.line(name=self.store.put(data), size=len(data), sha256=sha256(data).hexdigest())

    def unwrap(self, fields: Mapping[str, str], line: bytes, body: bytes) -> bytes:
        name, digest = unquote(fields["name"]), fields["sha256"]
        try:
            data = self.store.get(name)
        except LookupError as error:
            raise PayloadError(
                f"the store has no {name} any more: it has to keep what jobs may need"
            ) from error
        if sha256(data).hexdigest() != digest:
            raise PayloadError(f"what the store has as {name} is not what was put there")
        return data


class Files:
    """A store in a folder, which all programs see: that of a network file system, say."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def put(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        path = self.folder / name
        if path.exists():
            with contextlib.suppress(OSError):
                path.touch()  # so that what deletes old ones sees it as new
            return name
        descriptor, made = tempfile.mkstemp(dir=self.folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, path)
        except BaseException:
            os.unlink(made)
            raise
        return name

    def get(self, name: str) -> bytes:
        if not re.fullmatch("[0-9a-f]{64}", name):
            raise LookupError(name)
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise LookupError(name) from None

"""CRC-64 as in the footer of DUMP (polynomial of Jones, reflected, no initial or final xor)."""

from __future__ import annotations

import struct


def _table() -> list:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x95AC9329AC4BC9B5 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE = _table()


def crc64(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def body(dump: bytes) -> bytes:
    """The bytes of a value: a DUMP without version and checksum."""
    return dump[:-10]


def sealed(value: bytes, dump: bytes) -> bytes:
    """These bytes as a DUMP with the version of another one and a checksum that fits."""
    content = value + dump[-10:-8]
    return content + struct.pack("<Q", crc64(content))

"""Where ended jobs are kept: lines of JSON in a file, a table of SQLite, or of PostgreSQL."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any, Protocol

COLUMNS = "board id version state name queue kind message posted claimed ended record".split()

TABLE = """
CREATE TABLE IF NOT EXISTS {table} (
    board TEXT NOT NULL, id TEXT NOT NULL, version BIGINT NOT NULL, state TEXT NOT NULL, name TEXT,
    queue TEXT NOT NULL, kind TEXT, message TEXT, posted BIGINT, claimed BIGINT, ended BIGINT,
    record TEXT NOT NULL, PRIMARY KEY (board, id, version)
)
"""
NOTE = "CREATE TABLE IF NOT EXISTS {table}_revision (board TEXT PRIMARY KEY, revision BIGINT NOT NULL)"


class Store(Protocol):
    def revision(self) -> int:
        """Up to which revision of the board all has been added."""

    def add(self, rows: list[dict[str, Any]], revision: int | None) -> None:
        """Adds jobs, and notes the revision when there is one, in one step as far as the store can."""

    def close(self) -> None: ...


def store_of(where: str, board: str, table: str = "jobs") -> Store:
    """`postgresql://…`, `sqlite:FILE` or a name that ends with .db, .sqlite or .sqlite3; else a file."""
    if not table.isidentifier():
        raise ValueError(f"--table is a name of letters, digits and underscores, not {table!r}")
    if where.startswith(("postgresql://", "postgres://")):
        return Postgres(where, board, table)
    if where.startswith("sqlite:") or where.endswith((".db", ".sqlite", ".sqlite3")):
        return Sqlite(where.removeprefix("sqlite:"), board, table)
    return Lines(Path(where), board)


class Lines:
    """A line of JSON for each job. The revision is in a file beside it, `FILE.revision`, written after the
    lines have reached the disk.
    """

    def __init__(self, path: Path, board: str) -> None:
        self.path, self.board = path, board
        self.note = path.with_name(f"{path.name}.revision")
        self.file = path.open("a", encoding="utf-8")
        if self.file.tell() and path.read_bytes()[-1:] != b"\n":
            self.file.write("\n")  # a line that was not written to its end

    def revision(self) -> int:
        if not self.note.exists():
            return 0
        found: dict[str, int] = json.loads(self.note.read_text())
        return found.get(self.board, 0)

    def add(self, rows: list[dict[str, Any]], revision: int | None) -> None:
        for row in rows:
            self.file.write(_json(row["record"]) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        if revision is not None:
            found = json.loads(self.note.read_text()) if self.note.exists() else {}
            new = self.note.with_name(f"{self.note.name}.new")
            new.write_text(json.dumps({**found, self.board: revision}))
            os.replace(new, self.note)

    def close(self) -> None:
        self.file.close()


class Sqlite:
    def __init__(self, path: str, board: str, table: str) -> None:
        self.board, self.table = board, table
        self.db = sqlite3.connect(path)
        with self.db:
            self.db.execute(TABLE.format(table=table))
            self.db.execute(NOTE.format(table=table))

    def revision(self) -> int:
        words = f"SELECT revision FROM {self.table}_revision WHERE board = ?"
        found = self.db.execute(words, (self.board,)).fetchone()
        return int(found[0]) if found else 0

    def add(self, rows: list[dict[str, Any]], revision: int | None) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        with self.db:
            self.db.executemany(
                f"INSERT OR IGNORE INTO {self.table} VALUES ({marks})",
                [_values(self.board, row) for row in rows],
            )
            if revision is not None:
                words = f"INSERT OR REPLACE INTO {self.table}_revision VALUES (?, ?)"
                self.db.execute(words, (self.board, revision))

    def close(self) -> None:
        self.db.close()


class Postgres:
    def __init__(self, url: str, board: str, table: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise ValueError("PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None
        self.board, self.table = board, table
        self.db: Any = psycopg.connect(url)
        with self.db.transaction():
            self.db.execute(TABLE.format(table=table).replace("record TEXT", "record JSONB"))
            self.db.execute(NOTE.format(table=table))
        self.db.commit()

    def revision(self) -> int:
        words = f"SELECT revision FROM {self.table}_revision WHERE board = %s"
        found = self.db.execute(words, (self.board,)).fetchone()
        self.db.commit()
        return int(found[0]) if found else 0

    def add(self, rows: list[dict[str, Any]], revision: int | None) -> None:
        marks = ", ".join(["%s"] * len(COLUMNS))
        with self.db.transaction(), self.db.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self.table} VALUES ({marks}) ON CONFLICT DO NOTHING",
                [tuple(_clean(one) for one in _values(self.board, row)) for row in rows],
            )
            if revision is not None:
                cursor.execute(
                    f"INSERT INTO {self.table}_revision VALUES (%s, %s) "
                    "ON CONFLICT (board) DO UPDATE SET revision = excluded.revision",
                    (self.board, revision),
                )
        self.db.commit()

    def close(self) -> None:
        self.db.close()


def _values(board: str, row: dict[str, Any]) -> tuple[Any, ...]:
    return (board, *(row[name] for name in COLUMNS[1:-1]), _json(row["record"]))


def _json(record: Any) -> str:
    return json.dumps(record, ensure_ascii=True, default=_other)


def _other(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _clean(value: Any) -> Any:
    """PostgreSQL has no NUL and no lone surrogates in text."""
    if not isinstance(value, str):
        return value
    return value.replace("\\u0000", "\ufffd").replace("\x00", "\ufffd").encode("utf-8", "replace").decode()

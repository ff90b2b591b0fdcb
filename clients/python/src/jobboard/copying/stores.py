"""Where ended jobs are kept: lines of JSON in a file, a table of SQLite, or of PostgreSQL.

Each notes for each board up to which revision it has all. A board is known by its name and by when it was
created, so that one which was deleted and made again, or copied, begins anew.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ..connecting import hidden

COLUMNS = "board board_created id version state name queue kind message posted claimed ended record".split()

TABLE = """
CREATE TABLE IF NOT EXISTS "{table}" (
    board TEXT NOT NULL, board_created BIGINT NOT NULL, id TEXT NOT NULL, version BIGINT NOT NULL,
    state TEXT NOT NULL, name TEXT, queue TEXT NOT NULL, kind TEXT, message TEXT,
    posted BIGINT, claimed BIGINT, ended BIGINT, record {json} NOT NULL,
    PRIMARY KEY (board, board_created, id, version)
)
"""
NOTE = """
CREATE TABLE IF NOT EXISTS "{table}_revision" (
    board TEXT NOT NULL, board_created BIGINT NOT NULL, revision BIGINT NOT NULL,
    PRIMARY KEY (board, board_created)
)
"""
BEGIN = '{"board": '
"""How each line of a file begins."""
SHAPES = "jobs.ndjson, jobs.db, sqlite:FILE or postgresql://…"


class StoreError(ValueError):
    """A store cannot be used, or no longer. Its text names the store."""


class Store(Protocol):
    def revisions(self) -> dict[int, int]:
        """Up to which revision all has been added, of each board that had this name, by when it was
        created.
        """

    def add(self, created: int, rows: list[dict[str, Any]], revision: int | None) -> None:
        """Adds jobs of the board that was created then, and notes the revision when there is one, in one
        step as far as the store can.
        """

    def close(self) -> None: ...


def store_of(where: str, board: str, table: str = "jobs") -> Store:
    """`postgresql://…`, `sqlite:FILE` or a name that ends with .db, .sqlite or .sqlite3; else a file."""
    if not table.isidentifier():
        raise ValueError(f"--table is a name of letters, digits and underscores, not {table!r}")
    if where.startswith(("postgresql://", "postgres://")):
        return Postgres(where, board, table)
    path = where.removeprefix("sqlite:")
    if not path.strip() or path == ":memory:":
        raise ValueError(f"{where!r} keeps nothing: the store is a file or a database, {SHAPES}")
    if "//" in path[:2] or "://" in path:
        raise ValueError(f"{hidden(where)!r} is no store: there are {SHAPES}")
    if where != path or where.endswith((".db", ".sqlite", ".sqlite3")):
        return Sqlite(path, board, table)
    return Lines(Path(where), board)


class Lines:
    """A line of JSON for each job. The revisions are in a file beside it, `FILE.revision`, written after the
    lines have reached the disk.
    """

    def __init__(self, path: Path, board: str) -> None:
        self.path, self.board = path, _clean(board)
        self.note = path.with_name(f"{path.name}.revision")
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is no file: the store is {SHAPES}")
        end = _end_of(path)
        self.revisions()  # raises here
        self.file = path.open("a", encoding="utf-8")
        if end and not end.endswith(b"\n"):
            self.file.write("\n")  # a line that was not written to its end

    def revisions(self) -> dict[int, int]:
        found = self._notes().get(self.board)
        return {int(key): value for key, value in found.items()} if isinstance(found, dict) else {}

    def _notes(self) -> dict[str, Any]:
        if not self.note.exists():
            return {}
        try:
            found: Any = json.loads(self.note.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise StoreError(f"{self.note} is no note of an archive: name another file, or remove that one")
        return found

    def add(self, created: int, rows: list[dict[str, Any]], revision: int | None) -> None:
        for row in rows:
            own = {"board": self.board, "board_created": created}
            self.file.write(_json({**own, **row["record"]}) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        if revision is not None:
            found = self._notes()
            found[self.board] = {**self.revisions(), created: revision}
            new = self.note.with_name(f"{self.note.name}.new")
            new.write_text(json.dumps(found), encoding="utf-8")
            os.replace(new, self.note)

    def close(self) -> None:
        self.file.close()


def _end_of(path: Path, least: int = 65_536) -> bytes:
    """The last bytes of a file of ours, nothing when there is none. Raises `StoreError` for another's."""
    if not path.exists() or not (size := path.stat().st_size):
        return b""
    with path.open("rb") as file:
        file.seek(max(size - least, 0))
        found = file.read()
    *whole, last = found.split(b"\n")
    if size > least and len(whole) < 2:  # the last line is longer
        return _end_of(path, least * 16)
    begin = BEGIN.encode()
    is_ours = last.startswith(begin) or begin.startswith(last)  # cut off anywhere
    if whole and is_ours:
        try:
            record = json.loads(whole[-1])
        except ValueError:  # what was cut off once, and is a line of its own
            is_ours = whole[-1].startswith(begin) or begin.startswith(whole[-1] or b"-")
        else:
            is_ours = isinstance(record, dict) and {"board", "board_created", "id"} <= record.keys()
    if not is_ours:
        raise StoreError(f"the last line of {path} is no job of an archive: name another file")
    return found


class Database:
    """A table with a row for each job and each time it has ended, and one with the revisions. What SQLite and
    PostgreSQL have in common; each adds how it connects.
    """

    mark: str
    json: str
    """The type of records."""
    errors: type[Exception]

    def __init__(self, where: str, board: str, table: str) -> None:
        self.where, self.board, self.table = where, _clean(board), table
        with self._telling():
            self.db = self._connect(where)
        with self._whole() as cursor:
            cursor.execute(TABLE.format(table=table, json=self.json))
            cursor.execute(NOTE.format(table=table))

    def _connect(self, where: str) -> Any:
        raise NotImplementedError

    def _transaction(self) -> Any:
        raise NotImplementedError

    @contextlib.contextmanager
    def _whole(self) -> Iterator[Any]:
        """A cursor of a transaction."""
        with self._telling(), self._transaction():
            yield self.db.cursor()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            said = " ".join(str(error).split())
            raise StoreError(f"{hidden(self.where)}: {said or type(error).__name__}") from error

    def revisions(self) -> dict[int, int]:
        words = f'SELECT board_created, revision FROM "{self.table}_revision" WHERE board = {self.mark}'
        with self._whole() as cursor:
            cursor.execute(words, (self.board,))
            return dict(cursor.fetchall())

    def add(self, created: int, rows: list[dict[str, Any]], revision: int | None) -> None:
        marks = ", ".join([self.mark] * len(COLUMNS))
        with self._whole() as cursor:
            cursor.executemany(
                f'INSERT INTO "{self.table}" ({", ".join(COLUMNS)}) VALUES ({marks}) ON CONFLICT DO NOTHING',
                [self._values(created, row) for row in rows],
            )
            if revision is not None:
                cursor.execute(
                    f'INSERT INTO "{self.table}_revision" (board, board_created, revision) '
                    f"VALUES ({', '.join([self.mark] * 3)}) "
                    "ON CONFLICT (board, board_created) DO UPDATE SET revision = excluded.revision",
                    (self.board, created, revision),
                )

    def _values(self, created: int, row: dict[str, Any]) -> tuple[Any, ...]:
        own = (_clean(row[name]) for name in COLUMNS[2:-1])
        return (self.board, created, *own, _json(row["record"]))

    def close(self) -> None:
        self.db.close()


class Sqlite(Database):
    mark, json, errors = "?", "TEXT", sqlite3.Error

    def _connect(self, where: str) -> sqlite3.Connection:
        folder = Path(where).parent
        if not folder.is_dir():
            raise StoreError(f"{where}: there is no folder {folder}")
        return sqlite3.connect(where, timeout=30)

    def _transaction(self) -> Any:
        return self.db


class Postgres(Database):
    mark, json = "%s", "JSONB"

    def _connect(self, where: str) -> Any:
        return self.psycopg.connect(where, autocommit=True)

    def _transaction(self) -> Any:
        return self.db.transaction()

    def __init__(self, where: str, board: str, table: str) -> None:
        try:
            import psycopg
        except ImportError as error:  # also of the libpq that it needs
            raise StoreError(f"PostgreSQL needs psycopg: pip install 'psycopg[binary]' ({error})") from error
        self.psycopg, self.errors = psycopg, psycopg.Error
        super().__init__(where, board, table)


def _json(record: Any) -> str:
    return json.dumps(_clean(record), ensure_ascii=True)


def _clean(value: Any) -> Any:
    """What every store can keep: no NUL and no lone surrogates in text, no numbers that JSON lacks."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_clean(str(name)): _clean(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _clean(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))

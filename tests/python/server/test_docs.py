"""The documents say what the server does.

Fenced blocks marked `redis-cli` in commands.md and docs/guides/tour.md are sessions of `redis-cli -3`:
- A line that begins with `> ` is a command, the lines below it are its reply.
- `<name>` stands for a value of the server: it matches anything when first seen, and is the same value from
  then on, in replies and in commands. `<ms>` matches any integer, and `<rest>`
  any text, each time.
- Every section (heading) starts with an empty database; the blocks of a section follow one another.
- Blocks marked `redis-cli clock=manual` run under the manual clock.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import redis
from documents import COMMANDS, REDIS_CONF, TOUR, Block, blocks, sessions, table
from harness import MODULE, Board, Clock, Server, wait_until
from lives import LONG

LOAD_ONLY = {"jobboard.clock"}
"""Settings that are load arguments only and have no line in redis.conf."""


# redis-cli


class Cli:
    """A connection in RESP3 that renders replies as `redis-cli -3` prints them."""

    def __init__(self, server: Server) -> None:
        self.socket = server.socket()
        self.stream: BinaryIO = self.socket.makefile("rb")
        self.run("HELLO", "3")

    def run(self, *words: str) -> str:
        parts = [word.encode() for word in words]
        self.socket.sendall(
            b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        )
        return self.render("")

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def render(self, indent: str) -> str:
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2].decode("utf-8", "replace")
        if kind == b"+":
            return rest
        if kind == b"-":
            return f"(error) {rest}"
        if kind == b":":
            return f"(integer) {rest}"
        if kind == b",":
            return f"(double) {rest}"
        if kind == b"#":
            return "(true)" if rest == "t" else "(false)"
        if kind == b"_" or rest == "-1":
            return "(nil)"
        if kind == b"$":
            return quoted(self.stream.read(int(rest) + 2)[:-2])
        if kind in b"*%":
            return self.render_items(kind, int(rest), indent)
        raise AssertionError(f"a reply that this reader does not know: {line!r}")

    def render_items(self, kind: bytes, count: int, indent: str) -> str:
        if not count:
            return "(empty array)" if kind == b"*" else "(empty hash)"
        width = len(str(count))
        inner = indent + " " * (width + 2)
        out = []
        for number in range(1, count + 1):
            head = f"{number:>{width}}{')' if kind == b'*' else '#'} "
            item = self.render(inner)
            if kind == b"%":
                item = f"{item} => {self.render(inner)}"
            out.append(head + item)
        return f"\n{indent}".join(out)


def quoted(value: bytes) -> str:
    """A string as redis-cli prints it."""
    escapes = {0x5C: "\\\\", 0x22: '\\"', 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x07: "\\a", 0x08: "\\b"}
    return '"' + "".join(escapes.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in value) + '"'


PLACEHOLDER = re.compile(r"<[a-z][a-z0-9-]*>")


class Session:
    """Runs sessions of a document, and remembers what its placeholders stood for."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.known: dict[str, str] = {}

    def run(self, block: Block) -> None:
        command, expected = "", []
        for line in [*block.text.splitlines(), "> "]:
            if not line.startswith("> "):
                expected.append(line)
                continue
            if command:
                self.check(block, command, "\n".join(expected).rstrip())
            command, expected = line[2:], []

    def check(self, block: Block, command: str, expected: str) -> None:
        sent = PLACEHOLDER.sub(lambda found: self.known.get(found.group(), found.group()), command)
        reply = self.cli.run(*shlex.split(sent))
        names: list[str] = []
        found = re.fullmatch(self.pattern(expected, names), reply, re.DOTALL)
        where = f"section {block.heading!r}, block at line {block.line}"
        assert found, f"{where}\n> {sent}\nthe document says\n{expected}\nthe server says\n{reply}"
        self.known.update(zip(names, found.groups()))

    def pattern(self, expected: str, names: list[str]) -> str:
        out, at = [], 0
        for found in PLACEHOLDER.finditer(expected):
            name = found.group()
            out.append(re.escape(expected[at : found.start()]))
            at = found.end()
            if name == "<ms>":
                out.append(r"-?\d+")
            elif name == "<rest>":
                out.append(".*")
            elif name in self.known:
                out.append(re.escape(self.known[name]))
            elif name in names:
                out.append(rf"\{names.index(name) + 1}")
            else:
                names.append(name)
                out.append(r"([^\n\"]+)")
        return "".join([*out, re.escape(expected[at:])])


def run_session(server: Server, section: list[Block]) -> None:
    cli = Cli(server)
    try:
        session = Session(cli)
        for block in section:
            session.run(block)
    finally:
        cli.close()


def by_heading(document: str, info: str) -> Any:
    found = sessions(document, info)
    return pytest.mark.parametrize("section", found.values(), ids=[name.replace(" ", "-") for name in found])


@by_heading(COMMANDS, "redis-cli")
def test_examples_of_commands_md(server: Server, section: list[Block]) -> None:
    run_session(server, section)


@by_heading(COMMANDS, "redis-cli clock=manual")
def test_examples_of_commands_md_under_the_manual_clock(clocked: Server, section: list[Block]) -> None:
    run_session(clocked, section)


@by_heading(TOUR, "redis-cli")
def test_the_tour(server: Server, section: list[Block]) -> None:
    run_session(server, section)


# The worker of the tour

WORKER_LEASE = 12_000
"""Its worker heartbeats every four seconds."""


def worker_script(server: Server, lease: int) -> str:
    """The tour's worker, on this server, with a lease that a test can wait for."""
    [block] = [block for block in blocks(TOUR) if block.info == "python"]
    script = block.text
    for old, new in (
        ("redis.Redis(", f"redis.Redis(port={server.port}, "),
        ("LEASE = 30_000", f"LEASE = {lease}"),
    ):
        assert script.count(old) == 1, f"the worker must hold {old!r} once"
        script = script.replace(old, new)
    return script


@pytest.fixture
def tour_worker(server: Server, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = tmp_path / "worker.log"
    with log.open("wb") as out:
        script = worker_script(server, WORKER_LEASE)
        worker = subprocess.Popen([sys.executable, "-c", script], stdout=out, stderr=out)
        yield worker
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert "Traceback" not in log.read_text()


def test_worker_of_the_tour_keeps_its_lease_with_heartbeats(
    board: Board, tour_worker: subprocess.Popen[bytes]
) -> None:
    board.post(str(1.25 * WORKER_LEASE / 1000), id_="slow", retain=LONG)
    wait_until(lambda: board.state("slow") == "complete")
    assert board.get("slow")["attempt"] == 1
    assert board.events("slow") == ["posted", "claimed", "complete"]


def test_worker_of_the_tour_reports_a_failure_and_goes_on(
    board: Board, tour_worker: subprocess.Popen[bytes]
) -> None:
    board.post("not a number", id_="bad", retries=0)
    board.post("0", id_="good", retain=LONG)
    wait_until(lambda: board.state("good") == "complete")
    failed = board.get("bad")
    assert (failed["state"], failed["kind"]) == ("failed", "ValueError")
    assert tour_worker.poll() is None


def test_worker_of_the_tour_survives_the_loss_of_its_job(
    board: Board, tour_worker: subprocess.Popen[bytes]
) -> None:
    board.post("5", id_="taken")
    wait_until(lambda: board.state("taken") == "claimed")
    board.cancel("taken", force=True)
    board.post("0", id_="next", retain=LONG)
    wait_until(lambda: board.state("next") == "complete")
    assert board.state("taken") == "cancelled"


def test_worker_of_the_tour_is_short() -> None:
    [block] = [block for block in blocks(TOUR) if block.info == "python"]
    lines = [line for line in block.text.splitlines() if line.strip()]
    assert len(lines) <= 30


# Record fields


def test_table_of_record_fields_is_complete_and_in_order(board: Board) -> None:
    board.post(id_="first", queue="first")
    post = {"name": "mail", "group": "acme", "cost": 1, "meta": {"to": "ann"}, "tags": ["red"], "user": "eve"}
    board.post(id_="a", delay=50, after=["first"], unique="k", **post)
    board.update("a", track=True)
    seen = [list(board.get("a"))]
    board.depend("CLEAR", "a")
    token = board.claim_one("alice", block=30_000, session=True)["token"]
    board.heartbeat("alice", "a", token=token, progress=1, stage="begun")
    board.step("alice", "a", "fetch", token=token)
    board.signal("approved", "a")
    seen += [list(board.get("a")), list(board.get("a", fields=["id", "steps", "signals", "history"]))]
    board.post(id_="gated", queue="gated", **{"await": ["approved"]})
    seen.append(list(board.get("gated")))
    board.fail("alice", "a", token=token, retry=0)
    token = board.claim_one("alice")["token"]
    board.abandon("alice", "a", token=token, reason="tired")
    seen.append(list(board.get("a")))
    token = board.claim_one("alice")["token"]
    board.consume("alice", "a", token=token, result="done")
    seen.append(list(board.get("a")))
    board.call("SCHEDULE SET", "s", "x", "EVERY", 1 << 40)
    board.call("SCHEDULE RUN", "s")
    seen.append(list(board.get("@s@1")))
    board.post(id_="part", parent="@s@1")
    seen += [list(board.get("@s@1")), list(board.get("part"))]
    board.set(queue="first", dead_queue="dead")
    board.post(id_="last", queue="first", retries=0)
    board.claim("alice", id="last")
    board.fail("alice", "last")
    seen.append(list(board.get("last")))
    board.set(limit="tokens", rate=1)
    board.post(id_="priced", queue="models", costs=(1, "tokens", 5))
    board.claim("alice", id="priced")
    board.heartbeat("alice", "priced", cost=2)
    seen.append(list(board.get("priced")))
    fields = re.findall(r"`([a-z]+)`", " ".join(row["field"] for row in table(COMMANDS, "Record fields")))
    assert {name for names in seen for name in names} == set(fields)
    for names in seen:
        assert names == [name for name in fields if name in names]


# State by verb


def put_in(board: Board, clock: Clock, state: str) -> int | None:
    """Makes job `a` of an empty board stand in a row of the table; returns alice's token, if she has one."""
    if state == "unknown":
        return None
    if state == "blocked":
        board.post(id_="first", queue="first")
        board.post(id_="a", after=["first"])
        return None
    board.post(id_="a", delay=1000 if state == "scheduled" else None)
    if state in ("scheduled", "ready"):
        return None
    if state == "cancelled":
        board.cancel("a")
        return None
    worker = "alice" if state in ("claimed by you", "lapsed and yours") else "bob"
    token = board.claim_one(worker, lease=1000)["token"]
    if state == "lapsed and yours":
        clock.advance(1000)
    elif state == "complete":
        board.consume(worker, "a", retain=-1)
    elif state == "failed":
        board.fail(worker, "a", noretry=True)
    elif state == "trashed":
        board.trash(worker, "a")
    return token if worker == "alice" else None


VERBS: dict[str, Callable[[Board, int | None], Any]] = {
    "CLAIM": lambda board, _: board.claim("alice"),
    "CLAIM ID": lambda board, _: board.claim("alice", id_="a"),
    "HEARTBEAT": lambda board, token: board.heartbeat("alice", "a", token=token),
    "STEP": lambda board, token: board.step("alice", "a", "s", token=token),
    "AWAIT": lambda board, token: board.wait_for("alice", "a", ["s"], token=token),
    "CONSUME": lambda board, token: board.consume("alice", "a", token=token, retain=-1),
    "FAIL": lambda board, token: board.fail("alice", "a", token=token),
    "ABANDON": lambda board, token: board.abandon("alice", "a", token=token),
    "TRASH": lambda board, token: board.trash("alice", "a", token=token),
    "CANCEL": lambda board, _: board.cancel("a")[0],
    "CANCEL FORCE": lambda board, _: board.cancel("a", force=True)[0],
    "RELEASE": lambda board, _: board.release("a"),
    "REQUEUE": lambda board, _: board.requeue("a"),
    "DELETE": lambda board, _: board.delete("a"),
    "UPDATE": lambda board, _: board.update("a", log="looked at"),
    "SIGNAL": lambda board, _: board.signal("s", "a")[0],
    "POST ID": lambda board, _: board.post(id_="a"),
    "POST REPLACE": lambda board, _: board.post(id_="a", replace=True),
}


def retries_left(board: Board) -> int:
    job = board.get("a", fields=["left"])
    return job["left"] if job else 0


def cell(board: Board, clock: Clock, state: str, verb: str) -> str:
    """What the table should say, by asking the server."""
    board.client.delete(board.key)
    token = put_in(board, clock, state)
    before, left = board.get("a"), retries_left(board)
    try:
        reply = VERBS[verb](board, token)
    except redis.ResponseError as error:
        assert board.get("a") == before, f"{verb} of a job {state} was refused and changed it"
        return f"`{str(error).split()[0]}`"
    after = board.get("a")
    if after == before and reply not in ("already", "ended"):
        return "–"
    if after is None:
        return "deleted"
    charged = left - retries_left(board)
    out = after["state"]
    if reply in ("already", "requested", "kept", "ended"):
        out += f", {reply}"
    if charged > 0:
        out += f", {charged} retry"
    return out


def test_table_of_state_by_verb(clocked_board: Board, clock: Clock) -> None:
    rows = table(COMMANDS, "State by verb")
    assert set(rows[0]) - {""} == set(VERBS)
    wrong = []
    for row in rows:
        for verb in VERBS:
            found = cell(clocked_board, clock, row[""], verb)
            if found != row[verb]:
                wrong.append(f"{row['']}, {verb}: the table says {row[verb]}, the server {found}")
    assert not wrong, "\n".join(wrong)


# Settings


def conf_lines() -> dict[str, str]:
    """The settings that redis.conf sets, commented out or not."""
    return dict(re.findall(r"^#? ?(jobboard\.[a-z-]+) (\S+)$", REDIS_CONF, re.MULTILINE))


def module_settings(server: Server) -> dict[str, str]:
    settings = server.client().config_get("jobboard.*")
    return {name: value for name, value in settings.items() if name not in LOAD_ONLY}


def test_redis_conf_names_each_setting_with_its_default(server: Server) -> None:
    assert conf_lines() == module_settings(server)


def test_table_of_settings_names_each_setting_with_its_default(server: Server) -> None:
    rows = {f"jobboard.{row['setting'].strip('`')}": row for row in table(COMMANDS, "Settings")}
    of_module = {name: row["default"] for name, row in rows.items() if "module" in row["where"]}
    of_module = {name: value for name, value in of_module.items() if name not in LOAD_ONLY}
    assert of_module == module_settings(server)


def test_table_of_settings_names_the_range_of_each_setting(server: Server) -> None:
    client = server.client()
    rows = [row for row in table(COMMANDS, "Settings") if row["where"].startswith("module")]
    for row in rows:
        found = re.match(r"(-?\d+) to ([-\d^]+)", row["range"])
        if not found:
            continue
        name, low, high = row["setting"].strip("`"), int(found[1]), number(found[2])
        with server.configured(**{f"jobboard__{name}".replace("-", "_"): low}):
            client.config_set(f"jobboard.{name}", high)
            for outside in (low - 1, high + 1):
                with pytest.raises(redis.ResponseError):
                    client.config_set(f"jobboard.{name}", outside)


def number(text: str) -> int:
    """2^31-1 and the like."""
    found = re.fullmatch(r"(\d+)(?:\^(\d+))?(?:-(\d+))?", text)
    assert found, text
    base, power, less = found.groups()
    return int(base) ** int(power or 1) - int(less or 0)


def test_table_of_settings_names_each_setting_of_a_board_with_its_default(board: Board) -> None:
    board.post()
    rows = table(COMMANDS, "Settings")
    of_board = {row["setting"].strip("`"): row["default"] for row in rows if "board" in row["where"]}
    settings = {name: str(value) for name, (value, _) in board.call("SETTINGS GET").items()}
    assert settings == of_board


def test_server_starts_with_redis_conf(kind: str, fresh_server: Any, tmp_path: Path) -> None:
    (tmp_path / "target" / "release").mkdir(parents=True)
    (tmp_path / "target" / "release" / "libjobboard.so").symlink_to(MODULE)
    lines = [line for line in REDIS_CONF.splitlines() if not re.match(r"port |#|$", line)]
    server = fresh_server(module=False, config=lines, folder=tmp_path)
    client = server.client()
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert module_settings(server) == conf_lines()
    assert server.board().post(id_="a") == "a"
    server.restart(kill=True)
    assert server.board().state("a") == "ready"

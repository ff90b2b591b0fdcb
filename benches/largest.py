"""Instructions of the largest call of every option of every command: none keeps the server busy for long.

    python benches/largest.py [--write] [JOB.LIST ...]

Starts Redis 7.0 under callgrind, makes boards on which each command has most to do, and sends the calls that
`tests/python/largest.py` makes from COMMAND DOCS: with as many ids, fields and filters as a command takes.
Counts what the server's main thread spends in the module's commands. Fails when a call takes more than LIMIT.
`docs/reports/largest.md` holds the numbers of record; `--write` notes them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

from callgrind import Counter  # noqa: E402

RECORD = HERE.parent / "docs" / "reports" / "largest.md"
LIMIT = 1_000_000_000
"""Instructions of one call: some tenths of a second."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions of the largest calls.")
    parser.add_argument("commands", nargs="*", help="these commands alone")
    parser.add_argument("--write", action="store_true", help="note the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="largest-") as folder:
        within = ("--collect-atstart=no", "--toggle-collect=RedisModuleCommandDispatcher")
        counter = Counter(Path(folder), *within)
        os.environ["JOBBOARD_WRAP"] = " ".join(counter.command)
        rows = count(counter, arguments.commands)
    lines = table(rows)
    print("\n".join(lines))
    if arguments.write:
        text = RECORD.read_text()
        RECORD.write_text(text[: text.index("| command |")] + "\n".join(lines) + "\n")
    over = [row for row in rows if row[2] > LIMIT]
    for name, option, instructions, *_ in over:
        print(f"{name} {option}: {instructions:,} instructions, more than {LIMIT:,}", file=sys.stderr)
    return int(bool(over))


def count(counter: Counter, only: list[str]) -> list[tuple[str, str, int, int, str]]:
    """Of each call: command, option, instructions, bytes carried and returned, and its error."""
    # The harness reads how servers are wrapped when it is loaded.
    import redis
    from command_docs import module_docs
    from expect import error_text
    from harness import Server
    from largest import Words, calls_of, few, fields_of, tried

    def measured(server: Server, words: list) -> tuple[str | None, tuple[int, int]]:
        client = server.raw_client()
        before, error = client.info("stats")["total_net_output_bytes"], None
        counter.count(server.process.pid)
        try:
            client.execute_command(*words)
        except redis.ResponseError as refused:
            error = error_text(refused)
        instructions = counter.count(server.process.pid)
        returned = client.info("stats")["total_net_output_bytes"] - before
        return error, (instructions, sum(len(str(word)) for word in words) + returned)

    server, rows = Server("redis70"), []
    try:
        few(server)
        docs = module_docs(server)
        words = Words(fields_of(server.board()))
        for name in only or sorted(docs):
            server.flush()
            for call in calls_of(name, docs[name].get("arguments", []), words):
                error, (instructions, carried) = tried(server, name, call, measured)
                rows.append((name, call.option, instructions, carried, error or ""))
                print(f"{name} {call.option}: {instructions:,} {error or ''}", file=sys.stderr, flush=True)
    finally:
        server.close()
    return rows


def table(rows: list[tuple[str, str, int, int, str]]) -> list[str]:
    """The most expensive option of each command."""
    most: dict[str, tuple[str, str, int, int, str]] = {}
    for row in rows:
        most[row[0]] = max(most.get(row[0], row), row, key=lambda row: row[2])
    lines = ["| command | option | million instructions | KB carried and returned |", "|---|---|---|---|"]
    for name, option, instructions, carried, _ in most.values():
        word = f"`{option}`" if option else ""
        lines.append(f"| `{name}` | {word} | {instructions / 1e6:,.1f} | {carried / 1024:,.0f} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())

"""No call allocates much beside what it carries and returns: each option of each command at its largest.

What is tried follows from COMMAND DOCS: see `largest`. An option that is named once and given to many jobs
has a bound on all its copies (`max-shared`); what is refused for that is tried smaller.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis
from command_docs import module_docs
from expect import error_text
from harness import Server
from largest import Call, Words, calls_of, few, fields_of, tried

EXTRA = 24 << 20
"""So much may one command allocate beside what it carries and returns, here: see `few`. 64 MiB by default."""
COPIES = 4
"""How often the server may have that at a time: as it came, as arguments, in the board, in the reply."""
PARTS = 4


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_the_largest_calls_allocate_little_beside_what_they_carry_and_return(fresh_server, part):
    server = fresh_server()
    few(server)
    docs = module_docs(server)
    words = Words(fields_of(server.board()))
    wrong = []
    for name in sorted(docs)[part::PARTS]:
        server.flush()
        for call in calls_of(name, docs[name].get("arguments", []), words):
            wrong += [f"{name} {call.option}: {fault}" for fault in faults(server, name, call)]
    assert not wrong, "\n".join(wrong)


def faults(server: Server, name: str, call: Call) -> list[str]:
    """Why a call is no good; nothing for one that is accepted and allocates little."""
    error, (allocated, carried) = tried(server, name, call, measured)
    if allocated > EXTRA + COPIES * carried:
        return [f"{allocated} bytes allocated, {carried} carried: {error}"]
    return [error] if error else []


def measured(server: Server, words: list) -> tuple[str | None, tuple[int, int]]:
    """The error of a call; how many bytes it allocated at a time, how many it carried and returned."""
    client = server.client()
    client.memory_purge()
    process = Path(f"/proc/{server.process.pid}")
    (process / "clear_refs").write_text("5")
    before, told = resident(process, "VmRSS"), client.info()
    error = None
    try:
        server.raw_client().execute_command(*words)
    except redis.ResponseError as refused:
        error = error_text(refused)
    after = client.info("stats")
    carried = 64 * len(words)
    carried += sum(after[name] - told[name] for name in ("total_net_input_bytes", "total_net_output_bytes"))
    return error, (resident(process, "VmHWM") - before, carried)


def resident(process: Path, line: str) -> int:
    status = (process / "status").read_text()
    return int(re.search(rf"{line}:\s+(\d+) kB", status)[1]) << 10

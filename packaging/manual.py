"""The man pages: jobboard(7) from commands.md, each command with its syntax and what it does; those of the
programs from what they say to --help.
"""

from __future__ import annotations

import re

HEAD = """.TH JOBBOARD 7 "" "jobboard {version}" "Redis and Valkey modules"
.SH NAME
jobboard \\- job boards inside Redis and Valkey
.SH DESCRIPTION
A module that gives the server JOB.* commands to post a job, claim it under a lease, keep the lease alive,
and consume it.
When a worker dies, the server takes its job back the moment its lease ends, and wakes the next worker.
.PP
Load the module in the main configuration file of the server, include its settings, and restart the server:
.PP
.nf
.RS
loadmodule /usr/lib/redis/modules/libjobboard.so
include /etc/redis/jobboard.conf
.RE
.fi
.PP
Do not put loadmodule or user into an included file: after CONFIG REWRITE, which Sentinel sends, the server
would not start.
.PP
All replicas need the module as well; upgrade them first.
.SH COMMANDS
"""

TAIL = """.SH FILES
.TP
.I /usr/lib/redis/modules/libjobboard.so
The module.
.TP
.I /etc/redis/jobboard.conf
Its settings with their defaults.
.TP
.I /usr/share/doc/jobboard/commands.md
The reference: every command, option, reply, error and setting.
.TP
.I /usr/share/doc/jobboard/examples/roles.conf
Users for producers, workers, operators, approvers, observers and metrics.
.TP
.I /usr/share/doc/jobboard/examples/redis.conf
A complete configuration.
.SH SEE ALSO
.BR redis\\-server (1),
.BR redis\\-cli (1)
"""


def page(commands: str, version: str) -> str:
    """The page in roff."""
    parts = [HEAD.format(version=version)]
    for name, body in re.findall(r"^### (JOB\.\w+)\n(.*?)(?=^##|\Z)", commands, re.MULTILINE | re.DOTALL):
        syntax = re.search(r"```syntax\n(.*?)```\n\n[^\n]*\n\n", body, re.DOTALL)
        assert syntax, f"{name} has no syntax"
        summary = body[syntax.end() :].split("\n\n")[0]
        lines = [f".SS {escaped(name)}", ".nf", *map(escaped, syntax[1].splitlines()), ".fi", ".PP"]
        parts.append("\n".join([*lines, *map(escaped, prose(summary).splitlines())]) + "\n")
    return "".join(parts) + TAIL


def program(name: str, about: str, shown: str, version: str) -> str:
    """The page of a program in roff, from the text of its --help."""
    usage = re.search(r"^[Uu]sage: (.+?)\n\n", shown, re.MULTILINE | re.DOTALL)[1]
    lines = [
        f'.TH {name.upper()} 1 "" "jobboard {version}" "User Commands"',
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(about)}",
        ".SH SYNOPSIS",
        escaped(re.sub(r"\S*exporter\.py", name, " ".join(usage.split()))),
        ".SH OPTIONS",
    ]
    options = re.findall(
        r"^ {1,6}(\S.*?)(?:  +|\n +)(\S.*(?:\n {10,}\S.*)*)", shown[shown.index("\n\n") :], re.MULTILINE
    )
    assert len(options) > 3, f"{name} --help has no options"
    for option, said in options:
        lines += [".TP", f".B {escaped(option)}", escaped(" ".join(said.split()))]
    return "\n".join([*lines, ".SH SEE ALSO", ".BR jobboard (7)"]) + "\n"


def prose(markdown: str) -> str:
    """Without the marks of links, code and bold."""
    return re.sub(r"[`*]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown))


def escaped(line: str) -> str:
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{line}" if line.startswith((".", "'")) else line

"""What the server tells of the module's commands."""

from __future__ import annotations

from typing import Any

from harness import Server

INTERNAL = {"JOB.APPLY", "JOB.LOAD", "JOB.PROBE"}
"""Commands of the replication stream, the append-only file and the timer: not for clients."""


def ask(server: Server, *words: str) -> Any:
    """A reply as it came: redis-py would parse some replies of COMMAND as others."""
    client = server.client()
    client.response_callbacks.clear()
    return client.execute_command(*words)


def command_names(server: Server) -> list[str]:
    names = ask(server, "COMMAND", "LIST", "FILTERBY", "MODULE", "jobboard")
    return [name.upper() for name in names if "|" not in name and name.upper() not in INTERNAL]


def render_arguments(arguments: list) -> str:
    return " ".join(render_argument(argument) for argument in arguments)


def render_argument(argument: Any) -> str:
    """An argument of COMMAND DOCS as `redis-cli` prints it in its help."""
    kind, flags, token = argument["type"], argument.get("flags", ()), argument.get("token")
    if kind == "oneof":
        out = "|".join(render_argument(one) for one in argument["arguments"])
    elif kind == "block":
        out = render_arguments(argument["arguments"])
    elif kind == "pure-token":
        out, token = token, None
    else:
        out = argument.get("display_text", argument["name"])
    if "multiple" in flags:
        again = f"{token} {out}" if token and "multiple_token" in flags else out
        out = f"{out} [{again} ...]"
    if token:
        out = f"{token} {out}"
    return f"[{out}]" if "optional" in flags else out


def module_docs(server: Server) -> dict[str, dict]:
    """COMMAND DOCS of the module's commands, with subcommands as `JOB.SETTINGS GET`."""
    found = {}
    for name, doc in ask(server, "COMMAND DOCS", *command_names(server)).items():
        parts = doc.get("subcommands") or {name: doc}
        found.update({part.replace("|", " ").upper(): partdoc for part, partdoc in parts.items()})
    return found


CATEGORIES = {"redis70": False, "redis82": True, "valkey91": True}
"""Kinds of server whose modules can give their commands ACL categories."""


def command_info(server: Server) -> dict[str, dict]:
    """COMMAND INFO by name, subcommands as `job.settings|get`."""
    names = ask(server, "COMMAND", "LIST", "FILTERBY", "MODULE", "jobboard")
    found: dict[str, dict] = {}
    for row in ask(server, "COMMAND", "INFO", *[name for name in names if "|" not in name]):
        for name, arity, flags, first, last, step, categories, _, specs, _ in [row, *row[9]]:
            found[name.lower()] = {
                "arity": arity,
                "flags": set(flags),
                "keys": (first, last, step),
                "categories": set(categories),
                "specs": specs,
            }
    return found

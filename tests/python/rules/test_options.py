"""Each command takes the options that its documentation names and no others, and says what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from calls import CALLS, FILTERS, META, POST_SHARED, SLICE, WHERE, Call
from command_docs import ask, module_docs, render_arguments
from documents import ROOT
from expect import MS, refused, refused_like
from harness import Board, Server

PARENT = {"PARENT": ("p",)}
PAGE = {"CURSOR": ("0",), "COUNT": ("1",)}
WAITS = {"AFTER": ("1", "x"), "STRICT": ()}
ONWARD = {"NEXT": ("q",), "CLAIM": ()}

MORE = [
    Call("POST", ("payload",), {**PARENT, **WAITS}),
    Call("MPOST", ("1", "payload"), {**PARENT, **WAITS}),
    *(
        Call(name, (*head, *more), options)
        for name, head in {
            "POST": ("payload",),
            "MPOST": ("1", "payload"),
            "FLOW": ("1", "NODE", "n", "payload"),
            "SCHEDULE SET": ("s", "payload"),
        }.items()
        for more, options in {
            ("PARENT", "p"): {"SHARE": ("1",)},
            ("USER", "u"): {"MAXLIVE": ("1",)},
            ("UNIQUE", "k"): {"UNTIL": ("start",), "FOR": ("1",)},
        }.items()
    ),
    Call("POST", ("payload", "AFTER", "CHILDREN"), {"ONFAILURE": ("hold",)}),
    Call("MPOST", ("1", "payload", "AFTER", "CHILDREN"), {"ONFAILURE": ("hold",)}),
    Call("FLOW", ("1", "NODE", "n", "payload", "AFTER", "CHILDREN"), {"ONFAILURE": ("hold",)}),
    Call("CONSUME", ("w1", "j", "NEXT", "q", "AFTER", "CHILDREN"), {"ONFAILURE": ("hold",)}),
    Call("MCONSUME", ("w1", "1", "j", "NEXT", "q", "AFTER", "CHILDREN"), {"ONFAILURE": ("hold",)}),
    *(
        Call(name, (*head, "AFTER", "1", "x"), {"ONFAILURE": ("hold",), "STRICT": ()})
        for name, head in {
            "MPOST": ("1", "payload"),
            "FLOW": ("1", "NODE", "n", "payload"),
            "CONSUME": ("w1", "j", "NEXT", "q"),
            "MCONSUME": ("w1", "1", "j", "NEXT", "q"),
        }.items()
    ),
    *(
        Call(name, (*head, "AWAIT", "1", "s", *more), options)
        for name, head in {
            "MPOST": ("1", "payload"),
            "FLOW": ("1", "NODE", "n", "payload"),
            "SCHEDULE SET": ("s", "payload"),
            "CONSUME": ("w1", "j", "NEXT", "q"),
            "MCONSUME": ("w1", "1", "j", "NEXT", "q"),
        }.items()
        for more, options in {
            (): {"ANY": (), "WITHIN": ("1",)},
            ("WITHIN", "1"): {"ONTIMEOUT": ("run",)},
        }.items()
    ),
    Call("MPOST", ("1", "payload", "UNIQUE", "k"), {"ONCONFLICT": ("return",)}),
    Call("FLOW", ("1", "NODE", "n", "payload"), {"ID": ("j",), **POST_SHARED, **PARENT}),
    Call(
        "SCHEDULE SET",
        ("s", "payload"),
        {
            **{name: words for name, words in POST_SHARED.items() if name not in ("AT", "AFTER")},
            **PARENT,
            "EVERY": ("1",),
            "CRON": ("@daily",),
            "TZ": ("UTC",),
            "START": ("1",),
            "END": ("1",),
            "MAX": ("1",),
            "BACKLOG": ("skip",),
            "OVERLAP": ("skip",),
            "BACKOFF-JITTER": ("1",),
        },
    ),
    Call("SCHEDULE LIST", (), PAGE),
    Call(
        "WORKER REGISTER", ("w1",), {"ROLE": ("r",), "META": META, "FOR": ("1",), "SESSION": (), "ANEW": ()}
    ),
    Call("WORKER LIST", (), {"ROLE": ("r",), **PAGE}),
    Call("DEPEND ADD", ("j", "1", "x"), {"ONFAILURE": ("hold",), "STRICT": ()}),
    Call("DEPEND REMOVE", ("j", "1", "x"), {}),
    Call("CONSUME", ("w1", "j"), ONWARD),
    Call("CONSUME", ("w1", "j", "NEXT", "q"), WAITS),
    Call("MCONSUME", ("w1", "1", "j"), {**ONWARD, "RESULTS": ("1", "r")}),
    Call("MCONSUME", ("w1", "1", "j", "NEXT", "q"), {**WAITS, "AWAIT": ("1", "s")}),
    Call("DEPEND REMOVE", ("j", "SIGNALS"), {}),
    Call("DEPEND REMOVE", ("j", "CHILDREN"), {}),
    Call("DEPEND ADD", ("j", "CHILDREN"), {"ONFAILURE": ("run",), "STRICT": ()}),
    Call("AWAIT", ("w1", "j", "CHILDREN"), {"ONFAILURE": ("run",)}),
    *(
        Call(name, ("w1", "j", *more), {"CLAIM": ()})
        for name, more in {
            "FAIL": ("k", "m"),
            "ABANDON": (),
            "AWAIT": ("SIGNALS", "1", "s"),
            "TRASH": (),
        }.items()
    ),
    Call("MFAIL", ("w1", "k", "m", "1", "j"), {"CLAIM": ()}),
    Call("MTRASH", ("w1", "1", "j"), {"CLAIM": ()}),
    Call("LIMITS", (), PAGE),
    Call("UPDATE", WHERE, {**SLICE, "SET": ()}),
]
"""What the tests of all calls do not go through."""

EVERY = [*CALLS, *MORE]
IN_A_VALUE = {"FIXED", "EXPONENTIAL", "SKIP", "ONE", "ALL", "ALLOW", "REPLACE"}
"""Words that the documentation writes in capitals and that are the value of an option, or stand for ids."""
FREE = {"SETTINGS GET", "SETTINGS SET", "SETTINGS RESET", "METRICS"}
"""Here names of settings, or keys, stand where others have options."""


def tokens(arguments: list[dict[str, Any]]) -> Iterator[str]:
    for argument in arguments:
        if "token" in argument:
            yield argument["token"]
        yield from tokens(argument.get("arguments", []))


@pytest.fixture
def documented(server: Server) -> dict[str, set[str]]:
    """Command to the words in capitals that COMMAND DOCS tells of it."""
    docs = module_docs(server).items()
    return {name.removeprefix("JOB."): set(tokens(doc.get("arguments", []))) for name, doc in docs}


def taken(server: Server, calls: list[tuple[Call, str]]) -> list[str]:
    """What becomes of each command with a word after it, without value."""
    pipe = server.client(encoding_errors="replace").pipeline(transaction=False)  # PACKED is no text
    for call, word in calls:
        name, *sub = f"JOB.{call.name}".split()
        pipe.execute_command(name, *sub, "board", *call.head, word)
    return [str(reply) for reply in pipe.execute(raise_on_error=False)]


def test_every_documented_option_is_known_here(documented: dict[str, set[str]]) -> None:
    """And so the test below goes through all there are."""
    for name, words in documented.items():
        known = {word for call in EVERY if call.name == name for word in (*call.options, *call.head)}
        assert name in FREE or words - known <= IN_A_VALUE | {"NOT"}, name


def test_a_command_takes_each_option_that_is_documented(server: Server) -> None:
    calls = [(call, option) for call in EVERY for option in call.options]
    replies = zip(calls, taken(server, calls))
    assert not [(*call, reply) for call, reply in replies if "syntax error" in reply]


def test_a_command_takes_no_option_that_is_not_documented(
    server: Server, documented: dict[str, set[str]]
) -> None:
    """Every option of any command, and every word in capitals of the parsers, given to every other one."""
    words = {*set().union(*documented.values()), *(option for call in EVERY for option in call.options)}
    parsers = [path.read_text() for path in (ROOT / "src/commands").glob("*.rs")]
    words |= {word for text in parsers for word in re.findall(r'"([A-Z]+(?:-[A-Z]+)*)"', text)}
    known = {call.name for call in EVERY}
    plain = [Call(name, ("x", "y", "z"), {}) for name in documented if name not in known | FREE]
    filters = {"NOT", *FILTERS}
    calls = [
        (call, word)
        for call in [*EVERY, *plain]
        for word in words - documented[call.name] - (filters if "WHERE" in call.head else set())
    ]
    others = "wrong number of arguments|CLAIM at the end of a verb excludes ID|ID needs"
    replies = zip(calls, taken(server, calls))
    wrong = [
        f"{call.name} {call.head} {word}: {reply}"
        for (call, word), reply in replies
        if not re.match(f"syntax error near '{re.escape(word)}'|{others}", reply)
    ]
    assert not wrong, "\n".join(wrong)


# What was meant


def test_the_word_that_was_meant_may_stand_there(server: Server, documented: dict[str, set[str]]) -> None:
    """Every option of any command, right and misspelt, given to every other one: what is offered is taken."""
    all_words = {*set().union(*documented.values()), *(option for call in EVERY for option in call.options)}
    words = {*all_words, *(word[:-1] for word in all_words if len(word) > 4)}
    calls = [(call, word) for call in EVERY for word in words]
    meant = [re.search(r"did you mean ([A-Z-]+)\?", reply) for reply in taken(server, calls)]
    offered = [(call, found[1]) for (call, _), found in zip(calls, meant) if found]
    nowhere = "syntax error|exclude|goes with"
    wrong = [
        f"{call.name} {call.head} {word}: {reply}"
        for (call, word), reply in zip(offered, taken(server, offered))
        if re.search(nowhere, reply)
    ]
    assert offered and not wrong, "\n".join(sorted(set(wrong)))


def test_each_option_is_offered_where_it_may_stand(server: Server) -> None:
    calls = [(call, option) for call in EVERY for option in call.options if len(option) > 4]
    replies = taken(server, [(call, f"{option}X") for call, option in calls])
    missed = [
        f"{call.name} {call.head} {option}: {reply}"
        for (call, option), reply in zip(calls, replies)
        if f"did you mean {option}?" not in reply
    ]
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("POST", "x", "QUEU"), "QUEUE"),
        (("POST", "x", "PRIORTY"), "PRIORITY"),
        (("POST", "x", "retires"), "RETRIES"),
        (("CLAIM", "w", "BLOK"), "BLOCK"),
        (("LIST", "FIELD"), "FIELDS"),
        (("SCHEDULE SET", "s", "x", "EVERY", 5, "OVERLAPS"), "OVERLAP"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest(board: Board, words: tuple, meant: str) -> None:
    with refused(f"ERR syntax error near '{words[-1]}': did you mean {meant}?", board):
        board.call(*words)


def test_a_misspelt_option_of_a_flow_names_its_node_as_well(board: Board) -> None:
    with refused("ERR syntax error near 'QEUUE' in node 'a': did you mean QUEUE?", board):
        board.call("FLOW", 1, "NODE", "a", "x", "QEUUE", "q")


@pytest.mark.parametrize("word", ["BOGUS", "q", "", "x" * 500, "\u0100" * 500, "ID"])
def test_a_word_that_is_like_no_option_is_only_named(board: Board, word: str) -> None:
    command = ("CANCEL", 1, "a") if word == "ID" else ("POST", "x")
    with refused(f"ERR syntax error near '{word[:64]}'", board):
        board.call(*command, word)


@pytest.mark.parametrize("name", ["LIST", "COUNT", "CANCEL"])
def test_an_unknown_state_is_answered_with_those_there_are(board: Board, name: str) -> None:
    words = (name, *(["WHERE"] if name == "CANCEL" else []), "STATE")
    states = "scheduled, blocked, ready, claimed, complete, failed, cancelled, trashed"
    with refused(f"ERR unknown state 'lost': it must be one of {states}", board):
        board.call(*words, "lost")
    with refused("ERR unknown state 'canceled': did you mean 'cancelled'?", board):
        board.call(*words, "canceled")


def test_an_unknown_setting_is_answered_with_those_there_are(board: Board) -> None:
    board.post()
    names = ", ".join(board.call("SETTINGS GET", "LIMIT", "l"))
    with refused(f"ERR unknown setting 'QUEUE': it must be one of {names}", board):
        board.call("SETTINGS GET", "LIMIT", "l", "QUEUE")
    with refused("ERR unknown setting 'leese': did you mean 'lease'?", board):
        board.call("SETTINGS SET", "leese", 1)


def test_an_unknown_field_is_answered_with_those_there_are(board: Board) -> None:
    with refused("ERR unknown field 'payloads': did you mean 'payload'?", board):
        board.call("LIST", "FIELDS", 1, "payloads")
    with refused_like(
        "ERR unknown field 'bogus': it must be one of id, .+, history, until, pending, unsuccessful", board
    ):
        board.call("CLAIM", "w", "FIELDS", 1, "bogus")


def test_errors_of_durations_and_times_name_their_unit(board: Board) -> None:
    with refused(f"ERR DELAY must be an integer from 0 to {2**40}{MS}", board):
        board.call("POST", "x", "DELAY", "5sec")
    with refused(f"ERR TIMEOUT must be -1 or an integer from 1 to {2**40}{MS}", board):
        board.call("POST", "x", "TIMEOUT", 0)
    with refused(f"ERR AT must be an integer from 0 to {2**47} Unix milliseconds", board):
        board.call("POST", "x", "AT", "tomorrow")
    with refused(f"ERR lease must be an integer from 1 to {2**40}{MS}", board):
        board.call("SETTINGS SET", "lease", "soon")


# HELP


def test_help_of_a_command_names_its_subcommands_as_the_servers_own_does(clocked: Server) -> None:
    docs = module_docs(clocked)
    families = {name.split()[0] for name in docs if " " in name}
    assert len(families) == 5
    for family in families:
        head, *lines = ask(clocked, family, "HELP")
        assert head == f"{family} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
        subs = {line.split()[0]: line for line in lines[::2]}
        assert {f"{family} {sub}" for sub in subs} == {name for name in docs if name.startswith(f"{family} ")}
        assert list(subs)[-1] == "HELP"
        for sub, summary in zip(subs, lines[1::2]):
            doc = docs[f"{family} {sub}"]
            assert summary == f"    {doc['summary']}"
            arguments = render_arguments(doc.get("arguments", [])).split()
            assert set(arguments) <= set(re.sub("[<>]", "", subs[sub]).split()) or sub == "HELP"


def test_the_help_that_the_server_points_to_is_there(server: Server) -> None:
    with refused_like("(?i)ERR unknown subcommand .*JOB.SCHEDULE HELP.*"):
        server.client().execute_command("JOB.SCHEDULE", "BOGUS", "board")
    assert len(ask(server, "JOB.SCHEDULE", "HELP")) > 10


# QUEUE in place of QUEUES 1


def test_a_claim_names_one_queue_as_other_commands_do(board: Board) -> None:
    board.post(id_="a", queue="mail")
    [record] = board.call("CLAIM", "w", "QUEUE", "mail")
    assert record["id"] == "a"
    board.post(id_="b", queue="mail")
    assert board.call("WAIT", 1, "FOR", "claimable", "QUEUE", "mail") == "OK"
    state, [record] = board.call("CONSUME", "w", "a", "CLAIM", "QUEUE", "mail")
    assert (state, record["id"]) == ("complete", "b")
    with refused("ERR QUEUE and QUEUES exclude each other", board):
        board.call("CLAIM", "w", "QUEUE", "mail", "QUEUES", 1, "mail")

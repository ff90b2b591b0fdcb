"""What every command has in common: how it refuses what it does not understand."""

from __future__ import annotations

import pytest
from calls import CALLS, FILTERS, RANGES, find
from expect import MS, refused, refused_like
from harness import Board
from lives import ready

ALL_OPTIONS = [(call, option) for call in CALLS for option in call.options]
REPEATABLE = {"LIST": FILTERS, "COUNT": FILTERS, "POST": ["AFTER"], "MPOST": ["AFTER"]}
SUBCOMMANDS = ["GET", "SET", "RESET"]


def named(value: object) -> str:
    if isinstance(value, tuple) and hasattr(value, "head"):
        return "-".join([value.name, *(word for word in value.head if word.isupper())])
    return str(value)


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_a_wrong_number_of_arguments_is_the_servers_own_error(server, call):
    with refused_like(f"(?i)ERR wrong number of arguments for 'job.{call.name}' command"):
        server.client().execute_command(f"JOB.{call.name}")


@pytest.mark.parametrize("sub", SUBCOMMANDS)
def test_a_wrong_number_of_arguments_of_a_subcommand_is_the_servers_own_error(server, sub):
    with refused_like(f"(?i)ERR wrong number of arguments for 'job.settings\\|{sub}' command"):
        server.client().execute_command("JOB.SETTINGS", sub)


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_a_key_of_another_type_is_refused(server, call):
    board = server.board("text")
    board.client.set("text", "not a board")
    with refused("WRONGTYPE Operation against a key holding the wrong kind of value"):
        option = [] if call.name != "UPDATE" else ["PRIORITY", "1"]
        board.call(call.name, *call.head, *option)
    assert board.client.get("text") == "not a board"


@pytest.mark.parametrize("words", [["GET"], ["SET", "lease", "1"], ["RESET"]], ids=str)
def test_settings_of_a_key_of_another_type_are_refused(server, words):
    client = server.client()
    client.rpush("list", "x")
    sub, *rest = words
    with refused("WRONGTYPE Operation against a key holding the wrong kind of value"):
        client.execute_command("JOB.SETTINGS", sub, "list", *rest)


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_an_unknown_word_is_named(board, call):
    """A command that has no options is refused by the server, for its number of arguments."""
    ready(board, "other")
    with refused_like("ERR syntax error near 'BOGUS'|ERR wrong number of arguments .+", board):
        board.call(call.name, *call.head, "BOGUS", "1")


@pytest.mark.parametrize(("call", "option"), ALL_OPTIONS, ids=named)
def test_an_option_in_small_letters_means_the_same(server, call, option):
    words = [option.lower(), *call.options[option]]
    if option == "BLOCK":
        words[-1] = "1"
    # A packed reply is no text.
    pipe = server.client(encoding_errors="replace").pipeline(transaction=False)
    pipe.execute_command(f"JOB.{call.name}", "upper", *call.head, option, *call.options[option])
    pipe.execute_command(f"JOB.{call.name}", "lower", *call.head, *words)
    upper, lower = (str(reply) for reply in pipe.execute(raise_on_error=False))
    assert "syntax" not in upper
    assert (upper[:8] == lower[:8]) or call.name == "POST"


@pytest.mark.parametrize(
    ("call", "option"),
    [(call, option) for call, option in ALL_OPTIONS if option not in REPEATABLE.get(call.name, ())],
    ids=named,
)
def test_an_option_given_twice_is_refused(board, call, option):
    ready(board, "other")
    words = [option, *call.options[option]]
    with refused(f"ERR {option} is given twice", board):
        board.call(call.name, *call.head, *words, *words)


@pytest.mark.parametrize(
    ("call", "option"), [(call, option) for call, option in ALL_OPTIONS if call.options[option]], ids=named
)
def test_an_option_without_its_value_is_refused(board, call, option):
    ready(board, "other")
    with refused(f"ERR {option} needs a value", board):
        board.call(call.name, *call.head, option)


@pytest.mark.parametrize("where", RANGES)
def test_what_is_not_an_integer_is_refused(board, where):
    name, option = where.split()
    call = find(name, option)
    ready(board, "other")
    for wrong in ["x", "", "1.5", "1e3", " 1", "+1", "0x10", "9" * 30, "-" + "9" * 30]:
        with refused_like(
            f"ERR {option} must be an integer from -?\\d+ to \\d+({MS}| Unix milliseconds)?", board
        ):
            board.call(name, *call.head, option, wrong)


@pytest.mark.parametrize(
    ("where", "low", "high"), [(where, *bounds) for where, bounds in RANGES.items() if bounds[0] is not None]
)
def test_an_integer_out_of_range_is_refused_and_told_the_range(board, where, low, high):
    name, option = where.split()
    call = find(name, option)
    ready(board, "other")
    told = high if high is not None else r"\d+"
    for value in [low - 1] if high is None else [low - 1, high + 1]:
        with refused_like(
            f"ERR {option} must be an integer from {low} to {told}({MS}| Unix milliseconds)?", board
        ):
            board.call(name, *call.head, option, value)


@pytest.mark.parametrize(
    ("where", "low", "high"), [(where, *bounds) for where, bounds in RANGES.items() if bounds[0] is not None]
)
def test_the_ends_of_a_range_are_accepted(board, where, low, high):
    name, option = where.split()
    call = find(name, option)
    for value in {low, high} - {None}:
        if option == "BLOCK":
            board.client.transaction(
                lambda pipe: pipe.execute_command("JOB.CLAIM", "board", "w1", "BLOCK", 0)
            )
            continue
        try:
            board.call(name, *call.head, option, value)
        except Exception as error:
            assert "must be" not in str(error)


@pytest.mark.parametrize(
    "call", [call for call in CALLS if "1" in call.head and "AFTER" not in call.head], ids=named
)
def test_a_count_out_of_range_is_refused(board, call):
    ready(board, "other")
    for count in ["0", "-1", "10001", "x", "9" * 30]:
        words = [count if word == "1" else word for word in call.head]
        option = ["PRIORITY", "1"] if call.name == "UPDATE" else []
        most = 64 if {"AWAIT", "SIGNALS"} & {*call.head} else 10000
        with refused_like(f"ERR .+ must be an integer from 1 to {most}.*", board):
            board.call(call.name, *words, *option)


@pytest.mark.parametrize("call", [call for call in CALLS if "1" in call.head], ids=named)
def test_a_list_shorter_than_its_count_is_refused(board, call):
    ready(board, "other")
    head = list(call.head)
    head = head[: head.index("1")] + ["5", "a", "b"]
    with refused_like("ERR .+", board):
        board.call(call.name, *head)


def test_a_strange_word_is_cleaned_and_cut_in_the_error(board):
    with refused_like(r"ERR syntax error near '[^\r\n\0]{1,64}'", board):
        board.call("POST", "payload", b"bad\r\n-OK\0" + b"x" * 500, "1")


def test_a_long_word_is_cut_at_64_bytes(board):
    with refused(f"ERR syntax error near '{'x' * 64}'", board):
        board.call("POST", "payload", "x" * 65)


def test_a_word_of_many_bytes_a_letter_is_cut_between_letters(server):
    """The error stays valid UTF-8."""
    board = server.board()
    with refused_like("ERR syntax error near 'Ā*'", board):
        board.call("POST", "payload", "Ā" * 100)


def test_a_lower_limit_of_a_batch_is_enforced_everywhere(server):
    board = server.board()
    with server.configured(jobboard__max_batch=2):
        ready(board)
        with refused_like("ERR .+ must be an integer from 1 to 2", board):
            board.mpost(["a", "b", "c"])
        with refused_like("ERR COUNT must be an integer from 1 to 2", board):
            board.claim(count=3)
        with refused_like("ERR .+ must be an integer from 1 to 2", board):
            board.mget(["a", "b", "c"])


def test_an_unknown_subcommand_is_refused(server):
    with refused_like("ERR (unknown subcommand|Unknown subcommand).*"):
        server.client().execute_command("JOB.SETTINGS", "BOGUS", "board")


def test_the_clock_command_does_not_exist_without_a_manual_clock(server):
    with refused_like("ERR unknown command 'JOB.CLOCK'.*"):
        server.client().execute_command("JOB.CLOCK", "GET")


@pytest.mark.parametrize("command", ["JOB.APPLY", "JOB.LOAD"])
def test_an_internal_command_is_refused_for_clients(board, command):
    ready(board)
    for batch in ["", "x", b"\x00" * 50, b"\xff" * 50]:
        with refused_like("ERR internal command.*", board):
            board.client.execute_command(command, board.key, batch)


def absent(board: Board) -> bool:
    return not board.client.exists(board.key)


@pytest.mark.parametrize("words", ["BOGUS", "PRIORITY x", "NX", "ID @x", "QUEUE", "LEASE 0"])
def test_a_refused_post_does_not_create_the_board(board, words):
    with refused_like("ERR .+"):
        board.call("POST", "payload", *words.split())
    assert absent(board)


@pytest.mark.parametrize(
    "call", [call for call in CALLS if call.name not in ("POST", "MPOST", "PAUSE")], ids=named
)
def test_only_a_post_or_a_pause_creates_a_board(board, call):
    option = ["PRIORITY", "1"] if call.name == "UPDATE" else []
    try:
        board.call(call.name, *call.head, *option)
    except Exception as error:
        assert str(error) == "NOJOB no such job"
    assert absent(board)

"""The parser of the command line: words and options in any order, and the nearest option for a wrong one."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Until Python 3.12, argparse takes a word that may be left out for left out as soon as an option comes
    before it, and then refuses the word: `post mails --name welcome 1`. Then all is read once more, options
    first.
    """

    _is_mixing = False

    def __init__(self, *words: Any, **options: Any) -> None:
        """Options are written whole: `--thread` would pass for `--threads`, and mean another one tomorrow."""
        super().__init__(*words, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """The one line that helps, without all options before it, and without the password of a URL."""
        message = re.sub(r"//\S*@", "//…@", message)
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` lists what there is\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None and args:
            self._refuse_before_command(args[0])
        if self._is_mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        given = argparse.Namespace(**vars(namespace or argparse.Namespace()))
        found, rest = super().parse_known_args(args, namespace)
        if rest and not any(word.startswith("-") for word in rest):
            self._is_mixing = True
            try:
                found, rest = self.parse_known_intermixed_args(args, given)
            finally:
                self._is_mixing = False
        if rest:
            self.error(self._unknown(rest))
        return found, rest

    def _refuse_before_command(self, first: str) -> None:
        """An option of a command: its value would be taken for the command."""
        option = first.partition("=")[0]
        if first.startswith("-") and option.strip("-") and option not in self._option_string_actions:
            what = self._subparsers._group_actions[0].metavar if self._subparsers else None
            self.error(f"{option} stands after the command: {self.prog} {what} … {option} …")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if "," in str(value) and isinstance(action, argparse._AppendAction):
                option, several = max(action.option_strings, key=len), str(value).split(",")
                error.message += f"; for several write {' '.join(f'{option} {one}' for one in several)}"
                raise
            near = difflib.get_close_matches(str(value), map(str, action.choices or ()), 1)
            error.message += f"; did you mean {near[0]}?" if near else ""
            raise

    def _unknown(self, rest: Sequence[str]) -> str:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        pairs = [(word, difflib.get_close_matches(word.partition("=")[0], known, 1)) for word in rest]
        near = [f"{word}: did you mean {one[0]}?" for word, one in pairs if word.startswith("--") and one]
        return f"unrecognized arguments: {' '.join(rest)}" + (f" ({'; '.join(near)})" if near else "")

"""Text of others, safe to write to a terminal or a log: whoever posts a job must not move the cursor, set the
clipboard, add lines or turn the direction of writing there.
"""

from __future__ import annotations

import logging
import re
import textwrap
from typing import Any

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, what begins a line, what turns the direction of writing, and bytes that are no text."""


def escaped(text: object) -> str:
    r"""The text in one line: what would not be seen as `\x1b`, `\n`, `\u202e`."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def escaped_lines(text: str) -> str:
    """Likewise, but for its line ends and tabs."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in "\n\t" else escaped(found[0]), text)


def escaped_json(text: str) -> str:
    """JSON of the same value, in which all is seen."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class EscapingFilter(logging.Filter):
    """Lets no part of a log line be more than text. Of a traceback the lines stay, each behind four spaces,
    so that none can be taken for a line of the log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_shown, record.args))
        elif record.args:
            record.args = {name: _shown(value) for name, value in record.args.items()}
        if isinstance(record.exc_info, tuple) and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = textwrap.indent(escaped_lines(record.exc_text), "    ", lambda line: True)
        return True


def _shown(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else escaped(value)

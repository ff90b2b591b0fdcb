"""What no command can carry: words that cannot be made, or that redis-py cannot send.

Looked for when a batch could not be sent, so that all others cost nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..arguments import encoded
from ..outcomes import Outcome, said, unsent
from . import journal
from .batch import Batch
from .run import Run
from .storing import Storing

log = logging.getLogger("jobboard.worker")


class Unsendable:
    """Takes out of what was to be sent what cannot be; `found`: there was something."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._encoder = batch.engine.board.client.get_encoder()
        self.found = False

    def ends(self, ends: list[tuple[Run, Outcome]]) -> list[tuple[Run, Outcome]]:
        """The ends, with a failure in place of each that cannot be sent."""
        return [(run, self._end(run, outcome)) for run, outcome in ends]

    def reports(self, reports: list[tuple[Run, Mapping[str, Any]]]) -> list[tuple[Run, Mapping[str, Any]]]:
        """The reports that can be sent."""
        return [(run, fields) for run, fields in reports if self._report(run, fields)]

    def steps(self, steps: list[Storing]) -> list[Storing]:
        """The steps that can be sent. The handlers of the others get their error."""
        return [step for step in steps if self._step(step)]

    def _end(self, run: Run, outcome: Outcome) -> Outcome:
        error = self._fault(lambda: self.batch.end_words(run, outcome))
        if error is None:
            return outcome
        log.error("%s: how it ended cannot be sent: %s", journal.who(run), said(error))
        return unsent(error)

    def _report(self, run: Run, fields: Mapping[str, Any]) -> bool:
        error = self._fault(lambda: self.batch.report_words(run, fields))
        if error is not None:
            log.warning("%s: a report cannot be sent: %s", journal.who(run), said(error))
            run.answered += 1
        return error is None

    def _step(self, step: Storing) -> bool:
        step.error = self._fault(lambda: step.words([]))
        step.answered = step.error is not None
        return not step.answered

    def _fault(self, words: Callable[[], list[Any]]) -> Exception | None:
        """Why this cannot be sent."""
        try:
            for word in encoded(words()):
                self._encoder.encode(word)
        except Exception as error:
            self.found = True
            return error
        return None

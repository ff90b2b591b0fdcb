"""`manage.py jobboard_worker`, with the options of `jobboard worker`."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from ....cli import main


class Command(BaseCommand):
    help = (
        "Runs the tasks of a backend of TASKS on its board. All other options are those of `jobboard worker`."
    )
    requires_system_checks: Any = []

    def run_from_argv(self, argv: list[str]) -> None:
        words = argv[2:]
        if "--backend" in words:
            at = words.index("--backend")
            os.environ["JOBBOARD_DJANGO_BACKEND"] = words[at + 1]
            del words[at : at + 2]
        sys.exit(main(["worker", "jobboard.django.worker:board", *words]))

"""Django's tasks on a board: those of Django 6 (`django.tasks`), and of the package `django-tasks` before it.

- backend.py: what `TASKS` names: `"BACKEND": "jobboard.django.JobboardBackend"`
- performing.py: what a worker does for a job of Django's
- results.py: the record of a job as a result of Django's
- worker.py: the board for `jobboard worker jobboard.django.worker:board`
- management: `manage.py jobboard_worker`, with `jobboard.django` in INSTALLED_APPS

It needs the extra django.

Uses `board`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Later than the import of the app, since that comes before the settings are there."""
    if name == "JobboardBackend":
        from .backend import JobboardBackend

        return JobboardBackend
    raise AttributeError(name)

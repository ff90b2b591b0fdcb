"""The app, for `manage.py jobboard_worker`."""

from __future__ import annotations

from django.apps import AppConfig


class JobboardConfig(AppConfig):
    name = "jobboard.django"
    label = "jobboard"
    verbose_name = "jobboard"

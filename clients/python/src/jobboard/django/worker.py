"""The board of a backend, for `jobboard worker jobboard.django.worker:board`.

$DJANGO_SETTINGS_MODULE names the settings, $JOBBOARD_DJANGO_BACKEND another backend than `default`.
"""

from __future__ import annotations

import os

import django
from django.apps import apps

from .interface import task_backends

if not apps.ready:
    django.setup()

board = task_backends[os.environ.get("JOBBOARD_DJANGO_BACKEND", "default")].board

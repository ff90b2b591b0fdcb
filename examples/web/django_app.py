"""Django: a job that is posted when the transaction has committed, and one that cannot be lost.

    python django_app.py migrate
    python django_app.py runserver
    python django_app.py relay                  # posts what stands in the outbox; run one, or several
    jobboard worker django_app:board

`on_commit` posts when the rows are there for the worker to see. A process that dies between the commit and
the post loses the job. What must not be lost goes through the outbox: a row of the same transaction, which
the relay posts under an id of its own, so that a row that is posted twice is one job. The id is random: a
database that is restored from a backup gives its numbers again. A row that can never be posted is set aside
with its error, and holds up no other.
"""

from __future__ import annotations

import logging
import sys
import time
import uuid
from typing import Any

import django
from django.conf import settings
from django.db import connection, models, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from jobboard import Board, BoardError, Exists, NoHandler, Task

settings.configure(
    DEBUG=True,
    SECRET_KEY="of an example",
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
board = Board("web")
log = logging.getLogger(__name__)


class Order(models.Model):
    to = models.CharField(max_length=100)
    state = models.CharField(max_length=20, default="new")

    class Meta:
        app_label = "shop"


class Outbox(models.Model):
    id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    number = models.BigAutoField(primary_key=True)
    task = models.CharField(max_length=100)
    arguments = models.JSONField()
    error = models.TextField(null=True)

    class Meta:
        app_label = "shop"


@board.task(retries=5, backoff=("1s", "1h"))
def confirm(order: int) -> None:
    Order.objects.filter(pk=order).update(state="confirmed")


@board.task(retries=5, backoff=("1s", "1h"))
def charge(order: int) -> None:
    Order.objects.filter(pk=order).update(state="paid")


def post_safely(task: Task[..., Any], **arguments: Any) -> None:
    """Posts a task if the transaction commits, and never loses it then."""
    Outbox.objects.create(task=task.name, arguments=arguments)


def is_of_the_row(error: Exception) -> bool:
    """Whether the same row would be refused again: what it says is wrong, and not the server."""
    if isinstance(error, BoardError):
        return isinstance(error, Exists) or error.code == "ERR"
    return isinstance(error, (NoHandler, TypeError, ValueError))


def relay() -> int:
    """Posts what stands in the outbox, in its order; how many rows that were."""
    rows = list(Outbox.objects.filter(error=None).order_by("number")[:1000])
    for row in rows:
        try:
            board.post(row.arguments, name=row.task, id=f"outbox-{row.id}", nx=True)
        except Exception as error:
            if not is_of_the_row(error):
                raise
            log.error("the row %s of the outbox is set aside: %s", row.id, error)
            row.error = str(error)
            row.save(update_fields=["error"])
        else:
            row.delete()
    return len(rows)


def order(request: HttpRequest) -> JsonResponse:
    with transaction.atomic():
        found = Order.objects.create(to=request.GET["to"])
        if "charge" in request.GET:
            post_safely(charge, order=found.pk)
        else:
            transaction.on_commit(lambda: confirm.post(found.pk))
        if "fail" in request.GET:
            raise ValueError("this rolls everything back, and nothing is posted")
    return JsonResponse({"order": found.pk}, status=202)


urlpatterns = [path("order", order)]


def migrate() -> None:
    with connection.schema_editor() as editor:
        for model in (Order, Outbox):
            editor.create_model(model)


def main(verb: str) -> None:
    if verb == "migrate":
        migrate()
    elif verb == "relay":
        while True:
            if not relay():
                time.sleep(1)
    else:
        from django.core.management import execute_from_command_line

        execute_from_command_line([sys.argv[0], verb])


if __name__ == "__main__":
    main(sys.argv[1])

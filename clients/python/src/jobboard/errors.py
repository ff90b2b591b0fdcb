"""What the server refuses, as exceptions.

Each code of the module's errors has a class of its own. All are `BoardError`, which is a
`redis.ResponseError`: code that catches redis-py's errors keeps working. Trouble with the connection stays
redis-py's own.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import redis


class BoardError(redis.ResponseError):
    """The server refused a command. `code` is the first word of its answer, `detail` the rest."""

    code = "ERR"

    def __init__(self, detail: str = "", code: str | None = None) -> None:
        self.code = code or type(self).code
        self.detail = detail
        super().__init__(f"{self.code} {detail}".strip())

    def __reduce__(self) -> Any:
        return of_code, (self.code, self.detail)


class NoJob(BoardError):
    """The board does not know this job."""

    code = "NOJOB"


class NotClaimed(BoardError):
    """Nobody holds the job; `detail` is its state."""

    code = "NOTCLAIMED"


class NotOwner(BoardError):
    """Another worker, named by `detail`, holds the job; of a cancel `by` a user: another user posted it."""

    code = "NOTOWNER"


class Claimed(BoardError):
    """A worker holds the job already."""

    code = "CLAIMED"


class Stale(BoardError):
    """The token is of an earlier claim."""

    code = "STALE"


class NotReady(BoardError):
    """The job cannot be claimed now; `detail` says why."""

    code = "NOTREADY"


class Ended(BoardError):
    """The job has ended; `detail` begins with its state."""

    code = "ENDED"


class NotEnded(BoardError):
    """The job has not ended."""

    code = "NOTENDED"


class Cancelled(BoardError):
    """The job was cancelled, or somebody asked to cancel it."""

    code = "CANCELLED"


class Exists(BoardError):
    """A job of this id exists, or holds the unique key; `detail` is its id. Of a requeue the holder's, a
    blank, and that of the job that was not requeued.
    """

    code = "EXISTS"


class Limit(BoardError):
    """A limit is reached; `detail` says which."""

    code = "LIMIT"


class Gap(BoardError):
    """Chunks of output are missing before this one."""

    code = "GAP"


class WrongQueue(BoardError):
    """The job is not in the queue that was named; `detail` is its queue."""

    code = "WRONGQUEUE"


class Depended(BoardError):
    """Another job waits for this one; `detail` names both."""

    code = "DEPENDED"


class Cycle(BoardError):
    """A job would wait for itself, or be its own ancestor."""

    code = "CYCLE"


class NoSchedule(BoardError):
    """The board does not know this schedule."""

    code = "NOSCHEDULE"


class NoWorker(BoardError):
    """No worker of this name is registered."""

    code = "NOWORKER"


class Broken(BoardError):
    """This copy of the board has missed a change and is not to be trusted."""

    code = "BROKEN"


class NoBoard(BoardError):
    """The key of the board holds something else."""

    code = "WRONGTYPE"

    def __init__(self, detail: str = "") -> None:
        super().__init__(
            "the board's key holds something else: give the board another name, or delete that key"
        )


class NoModule(BoardError):
    """The server has not loaded the module, or one that is older than the command."""

    code = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(
            f"this server has no jobboard module: {detail}; load it there, name a server that has it, "
            "or start one with `jobboard serve`"
        )


class Refused(NamedTuple):
    """What the M-forms and the wait of a flow tell of one id that was refused."""

    code: str
    detail: str

    def error(self) -> BoardError:
        """The same as an exception."""
        return of_code(self.code, self.detail)


class CannotDo(ValueError):
    """What was asked for is written right, and cannot be done here, or not now."""


class NoResult(Exception):
    """The job that was waited for has no result to give. `state` says how it ended, `job` is its record, as
    far as it was kept.
    """

    def __init__(self, id: str, state: str, text: str = "", job: object | None = None) -> None:
        self.id, self.state, self.job = id, state, job
        super().__init__(f"{id} {state}{': ' if text else ''}{text}")


class JobFailed(NoResult):
    """It did not complete: its `state` is `failed`, `cancelled` or `trashed`."""


class ResultDropped(NoResult):
    """It is complete, and its record was dropped: `retain-complete` and `retain-result` say when that is."""


class JobUnknown(NoResult):
    """The board does not know it: it was never posted, or was deleted, or its record was dropped longer than
    `tombstone-ttl` ago.
    """


BY_CODE = {
    kind.code: kind
    for kind in (
        *(NoJob, NotClaimed, NotOwner, Claimed, Stale, NotReady, Ended, NotEnded, Cancelled, Exists),
        *(Limit, Gap, WrongQueue, Depended, Cycle, NoSchedule, NoWorker, Broken, NoBoard),
    )
}

SERVERS = frozenset(
    "UNBLOCKED CLUSTERDOWN MASTERDOWN TRYAGAIN NOREPLICAS MISCONF LOADING BUSY "
    "NOPERM NOAUTH OOM READONLY MOVED ASK CROSSSLOT EXECABORT".split()
)
"""Codes of the server's own. After `ERR`, which redis-py cuts off, an option's name may stand in capitals
too.
"""

LOST = frozenset({"NOJOB", "NOTCLAIMED", "NOTOWNER", "STALE", "ENDED", "CANCELLED"})
"""Codes that tell a worker that a job is no longer its own."""


_UNKNOWN = re.compile(r"(?:ERR )?unknown (?:command .?JOB\.|type name .?jobboard)", re.IGNORECASE)


def of_code(code: str, detail: str) -> BoardError:
    kind = BY_CODE.get(code)
    return BoardError(detail, code) if kind is None else kind(detail)


NAMES = "$JOBBOARD_URL or the board's URL"
"""What may say where a server is."""


CLOSED = ("Error while reading from", "Connection reset by peer", "Connection closed by server")
"""How errors begin of a server that ends a connection at its first command."""
GREETINGS = {"on_connect", "on_connect_check_health"}
"""What redis-py calls on a new connection, before its first command."""

SAYS = "says where the server is"

LOG_IN = "user and password stand in the URL"

NO_NODE = "no node of a cluster at"

HTTP_TO_HIREDIS = 'Protocol error, got "H" as reply type'
"""What hiredis, where it is installed, says of a reply that begins with HTTP."""

AMONG = {
    "server": "{name} {says}; `jobboard serve` starts one",
    "sentinels": "the Sentinels of {name} say that the primary is there, and name another server when they "
    "have promoted it: docs/operate/sentinel.md",
    "cluster": "it is a node of the cluster of {name}; its replica, where it has one, takes over, and "
    "`redis-cli --cluster check` says which slots nobody serves",
}
"""What to do about a server that cannot be reached, by what names it."""


def explained(error: Exception, name: str = NAMES, among: str = "server") -> Exception:
    """An error of redis-py's connections, with what to do in its text. `name` says where the server is, and
    `among`, of `AMONG`, what it belongs to.
    """
    text = str(error)
    if vars(error).get("is_explained"):
        return error
    if isinstance(error, redis.AuthenticationError):
        hint = f"{LOG_IN}: redis://user:password@host:port" + ("" if name == NAMES else f" in {name}")
        error.is_explained = True  # type: ignore[attr-defined]
        error.args = (f"{hint} (the server says: {text.rstrip('.')})",)
        return error
    elif text.startswith("Protocol Error") and "HTTP/" in text or text.startswith(HTTP_TO_HIREDIS):
        hint = f"a web server answers there, such as the console: {name} names the server's own port"
    elif text.startswith("No master found"):
        text = text.partition(" : ")[0]  # the rest is how redis-py has asked
        hint = f"no Sentinel of {name} answers, or none of them watches that service and sees its primary"
    elif text.startswith(NO_NODE):
        hint = f"name in {name} a node that is up, of a server with cluster-enabled yes"
    elif text.startswith(CLOSED) and name != NAMES and is_greeting(error):
        hint = f"where it ends every connection at once, its port may want TLS: rediss:// in {name}"
    elif "CERTIFICATE_VERIFY_FAILED" in text:
        hint = (
            "nothing here vouches for the server's certificate: ?ssl_ca_certs=FILE behind the address in "
            f"{name} names the certificate of who has signed it, and the address has the name that is in it"
        )
    elif "WRONG_VERSION_NUMBER" in text or "RECORD_LAYER_FAILURE" in text:
        hint = f"its port may speak no TLS: redis:// in {name}"
    elif "[SSL" in text:
        hint = f"the options of TLS, such as ssl_certfile and ssl_keyfile, stand behind the address in {name}"
    elif "connecting to" in text and SAYS not in text:
        hint = AMONG[among].format(name=name, says=SAYS)
    else:
        return error
    error.is_explained = True  # type: ignore[attr-defined]
    error.args = (f"{text.rstrip('.')}: {hint}",)
    return error


def is_greeting(error: Exception) -> bool:
    """Whether a new connection has failed. One on which the server had answered may break at any time."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_name in GREETINGS for frame, _ in frames)


CUT: dict[type[Exception], str] = {
    kind: code
    for code, kind in redis.connection.DefaultParser.EXCEPTION_CLASSES.items()
    if isinstance(kind, type)
    and issubclass(kind, redis.RedisError)
    and not issubclass(kind, redis.AuthenticationError)
}
"""The code that redis-py cuts off where an error of the server has a class of its own."""


def coded(error: Exception) -> str:
    """The text of an error as the server has sent it: with its code in front, by which documents name it."""
    text, code = str(error), CUT.get(type(error), "")
    return text if not code or text.startswith(code) else f"{code} {text}"


Raised = TypeVar("Raised", bound=Exception)


def translated(error: Raised, words: Sequence[Any] = ()) -> Raised | redis.ResponseError:
    """The error as one of ours, when its code is; else as it came. `words`: the command's."""
    if type(error) is not redis.ResponseError:
        return error  # redis-py knows it: OutOfMemoryError, NoPermissionError, ReadOnlyError …
    code, _, detail = str(error).partition(" ")
    if _UNKNOWN.match(str(error)):
        return NoModule(str(error))
    if code == NotOwner.code and words[:1] == ["JOB.CANCEL"]:
        detail = "another user posted it"  # whose name is nothing for who asks
    if code in BY_CODE:
        return of_code(code, detail)
    if code in SERVERS:
        return error
    return BoardError(str(error))

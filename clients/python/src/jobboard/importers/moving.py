"""Moves jobs from a source to a board, slice by slice; a kill at any moment loses and repeats nothing.

A slice is read from the source, posted in one step together with a note of which jobs it posted, and then
removed from the source. Who is killed between the last two finds the note when the import is started again,
removes those jobs, and takes the next. Along with the note the import is registered on the board as a
worker: a note that has outlived its board is known by that, and its jobs are posted again. Jobs that cannot
be posted stay where they are, and the import names them.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import redis

from ..replies import pairs
from .holds import Command, Hold
from .postings import WORKER, Posting, Recurring, Text

BYTES = 8 << 20
"""About how much one step posts at most."""

REASONS = 10
"""Jobs that stay whose reasons are kept to be told."""

POST = """
-- Ends a job once more as it had ended: a post that replaces it has made it ready.
local function ended(board, job, worker)
  redis.pcall('JOB.CLAIM', board, worker, 'ID', job.id, 'FIELDS', '1', 'id')
  if job.state == 'complete' then
    local result = job.result and {'RESULT', job.result} or {}
    redis.pcall('JOB.CONSUME', board, worker, job.id, unpack(result))
  else
    local kind, message = job.kind or 'failed', job.message or ''
    local reply = redis.pcall('JOB.FAIL', board, worker, job.id, kind, message, 'NORETRY')
    if reply.err then redis.pcall('JOB.FAIL', board, worker, job.id, 'was-' .. kind, message, 'NORETRY') end
  end
end

-- Makes jobs on the board children of a job: each is replaced by itself, with a parent.
-- One that has ended ends again at once, unless it would have to wait before.
local function adopt(board, words, worker)
  local open, over = {ready = true, blocked = true, scheduled = true}, {complete = true, failed = true}
  local fields, lives = {'state', 'due', 'payload', 'result', 'kind', 'message', 'after', 'awaits'}, {}
  for at = 3, #words do
    local found = redis.call('JOB.GET', board, words[at], 'FIELDS', #fields, unpack(fields)) or {}
    local job = {id = words[at]}
    for field = 1, #found, 2 do job[found[field]] = found[field + 1] end
    if job.state == 'claimed' then
      local instead = ' is at work: stop the workers of the board, and import again'
      return {err = 'CLAIMED its child ' .. job.id .. instead}
    end
    local ends = over[job.state] and not job.after and not job.awaits
    if open[job.state] or ends then lives[#lives + 1] = job end
  end
  for at, job in ipairs(lives) do
    local due = job.state == 'scheduled' and {'AT', job.due} or {}
    local payload = job.payload or ''
    local reply = redis.pcall('JOB.POST', board, payload, 'ID', job.id, 'XX', 'PARENT', words[2], unpack(due))
    local refused = type(reply) == 'table' and reply.err
    if at == 1 and refused then return reply end
    if over[job.state] and not refused then ended(board, job, worker) end
  end
  return 'OK'
end

-- A command; one that has more words than Lua hands over is refused.
local function done(words)
  if #words > 7900 then return {err = 'ERR its ' .. words[1] .. ' has ' .. #words .. ' words: too many'} end
  return redis.pcall(unpack(words))
end

local board, note, run, state, place = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local worker, slice = ARGV[4], ARGV[5]
local other = redis.call('LINDEX', note, 0)
if other and other ~= run then return redis.error_reply('BUSY another import of these jobs has begun') end
local at, replies, posted = 7, {}, {}
local function commands()
  local found = {}
  for command = 1, tonumber(ARGV[at]) do
    found[command] = {}
    for word = 1, tonumber(ARGV[at + 1]) do found[command][word] = ARGV[at + 1 + word] end
    at = at + 1 + #found[command]
  end
  at = at + 1
  return found
end
local lift, again = commands(), commands()
-- The client sends a slice again whose answer was lost: what it has posted then, it has posted.
local known = {}
if redis.call('LINDEX', note, 3) == slice then
  for _, ref in ipairs(redis.call('LRANGE', note, 4, -1)) do known[ref] = true end
end
for _, words in ipairs(lift) do redis.call(unpack(words)) end
for item = 1, tonumber(ARGV[6]) do
  local ref, id, commands = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  local refused, made = '', {}
  for command = 1, commands do
    local words = {}
    for word = 1, tonumber(ARGV[at]) do words[word] = ARGV[at + word] end
    at = at + 1 + #words
    if refused == '' and not known[ref] then
      if words[1] == 'JOB.SCHEDULE' and redis.call('JOB.SCHEDULE', 'GET', board, id) then
        refused = 'EXISTS ' .. id
      else
        local reply = words[1] == 'ADOPT' and adopt(board, words, worker) or done(words)
        if type(reply) == 'table' and reply.err then
          refused = reply.err
          for child = #made, 1, -1 do redis.call('JOB.DELETE', board, 1, made[child]) end
        elseif words[1] == 'JOB.POST' then
          made[#made + 1] = words[5]
        end
      end
    end
  end
  replies[item] = refused
  if refused == '' then posted[#posted + 1] = ref end
end
for _, words in ipairs(again) do redis.call(unpack(words)) end
if #posted > 0 then
  redis.call('JOB.WORKER', 'REGISTER', board, worker, 'ROLE', 'import', 'META', 1, 'slice', slice)
end
redis.call('DEL', note)
redis.call('RPUSH', note, run, state, place, slice)
for item = 1, #posted do redis.call('RPUSH', note, posted[item]) end
return replies
"""


class Section(NamedTuple):
    """Jobs in one state in one place of a source: a queue, a list, a stream."""

    state: str
    place: str


@dataclass
class Item:
    """A job as it was found. `ref` is what the source knows it by. Without a posting it stays, for `problem`;
    when it `waits`, it may go later in this run. A `foreign` one is not of this import at all."""

    ref: bytes
    posting: Posting | Recurring | None = None
    problem: str = ""
    waits: bool = False
    foreign: bool = False


def item_of(ref: bytes, make: Callable[..., Item], *found: Any) -> Item:
    """What `make` makes of what was found; when it cannot be read, the job stays and holds up no other."""
    try:
        return make(*found)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        return Item(ref, problem=f"it cannot be read: {type(error).__name__}: {error}")


class Source(Protocol):
    """Another library's keys."""

    name: str
    client: Any

    def sections(self) -> list[Section]:
        """What there is to move, in the order in which it is moved. Sections whose jobs wait for others come
        last, and are gone through until nothing moves any more."""

    def count(self, section: Section) -> int:
        """About how many jobs it has."""

    def holds(self) -> list[Hold]:
        """What keeps back the jobs that it has, by queue of the board."""

    def read(self, section: Section, left: int, size: int) -> list[Item]:
        """The next jobs behind the first `left`, at most `size`; none at the end."""

    def remove(self, section: Section, refs: list[bytes]) -> None:
        """Removes jobs that have been moved. Again for those that are gone already: nothing happens."""


CLAIMING = {"JOB.CLAIM", "ADOPT"}
"""What claims a job for an instant, which a pause and a concurrency would refuse."""

WAITING_LAST = {"deferred"}
"""States whose jobs wait for other jobs."""


@dataclass
class Report:
    """What has become of the jobs, by state."""

    found: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)
    stayed: Counter[str] = field(default_factory=Counter)
    reasons: list[tuple[str, str]] = field(default_factory=list)

    def stay(self, state: str, id: str, reason: str) -> None:
        self.stayed[state] += 1
        if len(self.reasons) < REASONS:
            self.reasons.append((id, reason))


class Busy(Exception):
    """Another import of the same jobs has begun."""


class Board:
    """The board that is moved to."""

    def __init__(self, client: Any, key: str, source: str) -> None:
        self.client, self.key = client, key
        tagged = re.search(r"\{[^}]+\}", key)
        self.note = (
            f"{key if tagged else '{' + key + '}'}.import.{source}"  # in the board's slot of a cluster
        )
        self.run = uuid.uuid4().hex
        self.worker = f"{WORKER}:{hashlib.sha256(self.note.encode()).hexdigest()[:16]}"
        """In whose name it is registered on the board."""
        self._post = client.register_script(POST)
        self.lifting: Callable[[], tuple[list[Command], list[Command]]] = lambda: ([], [])
        """The commands before and after those of a slice in which jobs are claimed for an instant."""

    def post(self, section: Section, items: list[Item]) -> list[str]:
        """Posts jobs, and notes those that it has posted. Gives for each why it was refused, or nothing."""
        refusals: dict[int, str] = {}
        posted: list[tuple[Item, list[list[Any]]]] = []
        for number, item in enumerate(items):
            assert item.posting
            try:
                posted.append((item, [list(map(sent, words)) for words in item.posting.commands(self.key)]))
            except UnicodeEncodeError as error:
                refusals[number] = f"a text of it cannot be sent: {error}"
        answers = iter(self._posted(section, posted) if posted else ())
        return [refusals[number] if number in refusals else next(answers) for number in range(len(items))]

    def _posted(self, section: Section, posted: list[tuple[Item, list[list[Any]]]]) -> list[str]:
        place = sent(section.place)
        words: list[Any] = [self.run, section.state, place, self.worker, uuid.uuid4().hex, len(posted)]
        claims = any(text(words[0]) in CLAIMING for _, commands in posted for words in commands)
        for around in self.lifting():
            words.append(len(around) if claims else 0)
            for command in around if claims else ():
                words += [len(command), *command]
        for item, commands in posted:
            assert item.posting
            words += [item.ref, sent(item.posting.id), len(commands)]
            for command in commands:
                words += [len(command), *command]
        try:
            return [text(one) for one in self._post(keys=[self.key, self.note], args=words)]
        except redis.ResponseError as error:
            if "BUSY another import" in str(error):
                raise Busy(str(error)) from error
            raise

    def noted(self) -> tuple[Section, list[bytes]] | None:
        """What an import that was killed had posted last."""
        found = self.client.lrange(self.note, 0, -1)
        if not found:
            return None
        return Section(text(found[1]), text(found[2])), found[4:]

    def is_noted(self) -> bool:
        """Whether the board is still the one that the jobs of the note were posted to."""
        slice, cursor = self.client.lindex(self.note, 3), b"0"
        while True:
            words = ["JOB.WORKER", "LIST", self.key, "ROLE", "import", "CURSOR", cursor]
            cursor, rows = self.client.execute_command(*words, NEVER_DECODE=True)
            for row in map(dict, map(pairs, rows)):
                if row[b"worker"] == self.worker.encode():
                    return bool(dict(pairs(row[b"meta"])).get(b"slice") == slice)
            if cursor == b"0":
                return False

    def forget(self) -> None:
        self.client.delete(self.note)
        with contextlib.suppress(redis.ResponseError):  # there is something else under its key
            self.client.execute_command("JOB.WORKER", "DEREGISTER", self.key, self.worker)


class Mover:
    """Takes slices of at most `size` jobs. `told` is called with how many jobs have been looked at."""

    def __init__(self, source: Source, board: Board, size: int) -> None:
        self.source, self.board, self.size = source, board, size
        self.told: Callable[[int], None] = lambda done: None
        self.report = Report()
        self.again = 0
        """Jobs that a killed import had posted to a board that was deleted since: they are moved again."""
        self._looked = 0

    def recover(self) -> int:
        """Ends what a killed import has begun; how many jobs that were."""
        noted = self.board.noted()
        if noted is None:
            return 0
        section, refs = noted
        if refs and not self.board.is_noted():
            self.again = len(refs)
            refs = []
        if refs:
            self.source.remove(section, refs)
        self.board.forget()
        return len(refs)

    def move(self, sections: list[Section]) -> Report:
        for section in sections:
            if section.state not in WAITING_LAST:
                self._move(section)
        self._move_waiting([section for section in sections if section.state in WAITING_LAST])
        self.board.forget()
        return self.report

    def _move_waiting(self, sections: list[Section]) -> None:
        """Goes through jobs that wait for others until none moves any more."""
        whole, moved = self.report, True
        while moved:
            self.report = Report()
            for section in sections:
                self._move(section)
            moved = any(self.report.moved.values())
            whole.moved += self.report.moved
            whole.found += self.report.moved if moved else self.report.stayed
        whole.stayed += self.report.stayed
        whole.reasons = (whole.reasons + self.report.reasons)[:REASONS]
        self.report = whole

    def count(self, sections: list[Section]) -> Report:
        """A dry run: reads all and changes nothing."""
        for section in sections:
            left = 0
            while True:
                items = self.source.read(section, left, self.size)
                if not items:
                    break
                left += len(items)
                for item in items:
                    if item.foreign:
                        continue
                    self.report.found[section.state] += 1
                    if item.problem and not item.waits:
                        self.report.stay(section.state, text(item.ref), item.problem)
                self._tell(len(items))
        return self.report

    def _move(self, section: Section) -> None:
        left = 0
        while True:
            items = self.source.read(section, left, self.size)
            if not items:
                return
            for item in items:
                if not item.foreign:
                    self.report.found[section.state] += 1
                if item.posting is None or item.foreign:
                    left += 1
                    if not item.foreign:
                        self.report.stay(section.state, text(item.ref), item.problem)
            for chunk in chunks(item for item in items if item.posting and not item.foreign):
                left += self._post(section, chunk)
            self._tell(len(items))

    def _tell(self, number: int) -> None:
        self._looked += number
        self.told(self._looked)

    def _post(self, section: Section, items: list[Item]) -> int:
        """Posts jobs and removes them from the source; how many stay."""
        refusals = self.board.post(section, items)
        gone = []
        for item, refusal in zip(items, refusals):
            assert item.posting
            if refusal:
                self.report.stay(section.state, item.posting.id, refusal)
            else:
                gone.append(item.ref)
        if gone:
            self.source.remove(section, gone)
        self.report.moved[section.state] += len(gone)
        return len(items) - len(gone)


def chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Jobs in their order, together not much more than BYTES."""
    found: list[Item] = []
    size = 0
    for item in items:
        assert item.posting
        if found and size + item.posting.size() > BYTES:
            yield found
            found, size = [], 0
        found.append(item)
        size += item.posting.size()
    if found:
        yield found


def sent(word: Any) -> Any:
    """A word of a command: texts that were bytes of no text become these again."""
    return word.encode("utf-8", "surrogateescape") if isinstance(word, str) else word


def text(value: Text) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value

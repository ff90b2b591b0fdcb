"""Operating a sharded board. Each shard does its part at once; all of them together are not atomic."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..arguments import Name
from ..jobs import Job
from ..times import Duration
from .administering import Setting
from .family import Slice
from .filters import Filters
from .operating import Changes, Progress
from .sending import Request, Steps, one, steps
from .sharded_reading import ShardedListing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .board import Requests


class ShardedOperating(ShardedListing):
    _shards: list[Requests]

    def _place(self, id: Name) -> Requests:
        raise NotImplementedError

    def _by_shard(self, ids: Sequence[Name]) -> list[tuple[Requests, list[Name]]]:
        raise NotImplementedError

    @steps
    def cancel(
        self, *ids: Name, by: Optional[Name] = None, force: bool = False
    ) -> Steps[list[Optional[str]]]:
        """Cancels jobs, as `Board.cancel` does."""
        found: dict[Name, Optional[str]] = {}
        for shard, own in self._by_shard(ids):
            found.update(zip(own, (yield shard.cancel(*own, by=by, force=force))))
        return [found[id] for id in ids]

    @steps
    def release(self, *ids: Name) -> Steps[Slice[Job]]:
        """Takes claimed jobs from their workers."""
        return (yield from self._each(ids, lambda shard, own: shard.release(*own)))

    @steps
    def requeue(self, *ids: Name, queue: Optional[Name] = None) -> Steps[Slice[Job]]:
        """Makes failed, trashed and cancelled jobs ready again."""
        return (yield from self._each(ids, lambda shard, own: shard.requeue(*own, queue=queue)))

    @steps
    def delete(self, *ids: Name, records: bool = False) -> Steps[Slice[Job]]:
        """Forgets jobs in any state."""
        return (yield from self._each(ids, lambda shard, own: shard.delete(*own, records=records)))

    @steps
    def update(self, *ids: Name, **changes: Unpack[Changes]) -> Steps[Slice[Job]]:
        """Changes jobs that have not ended."""
        return (yield from self._each(ids, lambda shard, own: shard.update(*own, **changes)))

    @steps
    def cancel_where(
        self,
        where: Filters,
        *,
        by: Optional[Name] = None,
        force: bool = False,
        dryrun: bool = False,
        progress: Optional[Progress] = None,
    ) -> Steps[Slice[Job]]:
        """Cancels all jobs that pass the filters."""

        def part(shard: Requests, told: Progress) -> Steps[Slice[Job]]:
            return shard.cancel_where(where, by=by, force=force, dryrun=dryrun, progress=told)

        return (yield from self._all(part, progress))

    @steps
    def release_where(
        self, where: Filters, *, dryrun: bool = False, progress: Optional[Progress] = None
    ) -> Steps[Slice[Job]]:
        """Takes all claimed jobs that pass the filters from their workers."""

        def part(shard: Requests, told: Progress) -> Steps[Slice[Job]]:
            return shard.release_where(where, dryrun=dryrun, progress=told)

        return (yield from self._all(part, progress))

    @steps
    def requeue_where(
        self,
        where: Filters,
        *,
        to: Optional[Name] = None,
        dryrun: bool = False,
        progress: Optional[Progress] = None,
    ) -> Steps[Slice[Job]]:
        """Requeues all failed, trashed and cancelled jobs that pass the filters."""

        def part(shard: Requests, told: Progress) -> Steps[Slice[Job]]:
            return shard.requeue_where(where, to=to, dryrun=dryrun, progress=told)

        return (yield from self._all(part, progress))

    @steps
    def delete_where(
        self,
        where: Filters,
        *,
        records: bool = False,
        dryrun: bool = False,
        progress: Optional[Progress] = None,
    ) -> Steps[Slice[Job]]:
        """Forgets all jobs that pass the filters."""

        def part(shard: Requests, told: Progress) -> Steps[Slice[Job]]:
            return shard.delete_where(where, records=records, dryrun=dryrun, progress=told)

        return (yield from self._all(part, progress))

    @steps
    def update_where(
        self, where: Filters, changes: Changes, *, dryrun: bool = False, progress: Optional[Progress] = None
    ) -> Steps[Slice[Job]]:
        """Changes all jobs that pass the filters."""

        def part(shard: Requests, told: Progress) -> Steps[Slice[Job]]:
            return shard.update_where(where, changes, dryrun=dryrun, progress=told)

        return (yield from self._all(part, progress))

    @steps
    def pause(
        self,
        *,
        queue: Optional[Name] = None,
        group: Optional[Name] = None,
        for_: Optional[Duration] = None,
        release: bool = False,
    ) -> Steps[None]:
        """Lets nothing be claimed, in all shards."""
        for shard in self._shards:
            yield shard.pause(queue=queue, group=group, for_=for_, release=release)

    @steps
    def resume(self, *, queue: Optional[Name] = None, group: Optional[Name] = None) -> Steps[None]:
        """Ends a pause, in all shards."""
        for shard in self._shards:
            yield shard.resume(queue=queue, group=group)

    @steps
    def settings_get(self, *names: str, queue: Optional[Name] = None) -> Steps[dict[str, Setting]]:
        """The settings in force, of the first shard: `settings_set` sets them in all."""
        return one(self._shards[0].settings_get(*names, queue=queue))

    @steps
    def settings_set(
        self,
        settings: Mapping[str, Any],
        *,
        queue: Optional[Name] = None,
        group: Optional[Name] = None,
        limit: Optional[Name] = None,
    ) -> Steps[None]:
        """Sets settings in all shards. Limits and rates count in each shard: divide them by their number."""
        for shard in self._shards:
            yield shard.settings_set(settings, queue=queue, group=group, limit=limit)

    @steps
    def settings_reset(
        self,
        *names: str,
        queue: Optional[Name] = None,
        group: Optional[Name] = None,
        limit: Optional[Name] = None,
    ) -> Steps[None]:
        """Goes back to the module's settings, in all shards."""
        for shard in self._shards:
            yield shard.settings_reset(*names, queue=queue, group=group, limit=limit)

    @steps
    def schedule_set(self, /, id: Name, payload: Any = None, **options: Any) -> Steps[None]:
        """Makes or changes a schedule, as `Board.schedule_set` does; it lives in the shard of its id."""
        yield self._place(id).schedule_set(id, payload, **options)

    @steps
    def schedule_get(self, id: Name) -> Steps[Optional[dict[str, Any]]]:
        """A schedule, or None."""
        return one(self._place(id).schedule_get(id))

    @steps
    def schedule_del(self, id: Name) -> Steps[None]:
        """Deletes a schedule."""
        yield self._place(id).schedule_del(id)

    @steps
    def schedule_pause(self, id: Name) -> Steps[None]:
        """Lets a schedule post nothing."""
        yield self._place(id).schedule_pause(id)

    @steps
    def schedule_resume(self, id: Name) -> Steps[None]:
        """Lets it go on."""
        yield self._place(id).schedule_resume(id)

    @steps
    def schedule_run(self, id: Name) -> Steps[Optional[str]]:
        """Posts a job of a schedule at once."""
        return one(self._place(id).schedule_run(id))

    def _each(
        self, ids: Sequence[Name], make: Callable[[Requests, list[Name]], Request[Slice[Job]]]
    ) -> Generator[Request[Any], Any, Slice[Job]]:
        whole: Slice[Job] = Slice(0)
        for shard, own in self._by_shard(ids):
            _join(whole, (yield make(shard, own)))
        return whole

    def _all(
        self,
        make: Callable[[Requests, Progress], Steps[Slice[Job]]],
        progress: Optional[Progress],
    ) -> Generator[Request[Any], Any, Slice[Job]]:
        whole: Slice[Job] = Slice(0)

        def told(count: int) -> None:
            if progress:
                progress(whole.count + count)

        for shard in self._shards:
            _join(whole, (yield from make(shard, told)))
        return whole


def _join(whole: Slice[Job], part: Slice[Job]) -> None:
    whole.count += part.count
    whole.held += part.held
    whole.records += part.records

"""`jobboard import work-queue`, on items that redis-work-queue has made."""

from __future__ import annotations

import redis
from harness import Server
from redis_work_queue import Item, KeyPrefix, WorkQueue


def test_items_come_in_their_order_with_their_data(server: Server, source: redis.Redis, imported):
    work = WorkQueue(KeyPrefix("work"))
    items = [Item.from_json_data({"n": 1}, id="one"), Item(b"\xff\x00", id="two"), Item("", id="three")]
    for item in items:
        work.add_item(source, item)
    assert imported("work-queue", "board", "work", "--queue", "mails")[0] == 0
    found = server.raw_client().execute_command(
        "JOB.CLAIM", "board", "w1", "QUEUES", 1, "mails", "COUNT", 9, "FIELDS", 3, "id", "payload", "meta"
    )
    assert [(job[b"id"].decode(), job[b"payload"]) for job in found] == [
        (item.id(), item.data()) for item in items
    ]
    assert found[0][b"meta"] == {b"source": b"redis-work-queue"}
    assert source.keys("work*") == []


def test_leased_items_are_moved_when_it_is_asked_for(server: Server, source: redis.Redis, imported):
    work = WorkQueue(KeyPrefix("work"))
    work.add_item(source, Item("a", id="leased"))
    work.add_item(source, Item("b", id="waiting"))
    assert work.lease(source, 60).id() == "leased"
    assert imported("work-queue", "board", "work")[0] == 0
    assert (server.board().count(), work.processing(source)) == (1, 1)
    assert imported("work-queue", "board", "work", "--running")[0] == 0
    assert server.board().state("leased") == "ready"
    assert source.keys("work*") == []


def test_ids_whose_data_have_gone_make_no_jobs(server: Server, source: redis.Redis, imported):
    """They are complete: an id that was given back may stand in the list twice."""
    work = WorkQueue(KeyPrefix("work"))
    for id in ("done", "open"):
        work.add_item(source, Item(id, id=id))
    source.delete("work:item:done")
    code, output = imported("work-queue", "board", "work")
    assert code == 1
    assert "stays: done: its data have gone: it is complete" in output
    assert server.board().list_all(justid=True) == ["open"]


def test_several_prefixes_at_once(server: Server, source: redis.Redis, imported):
    for prefix in ("a", "b"):
        WorkQueue(KeyPrefix(prefix)).add_item(source, Item(prefix))
    assert imported("work-queue", "board", "a", "b")[0] == 0
    assert server.board().count() == 2

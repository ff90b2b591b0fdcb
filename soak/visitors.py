"""Who comes and goes: clients that wait, listen and register, operators, and short-lived boards."""

from __future__ import annotations

from client import EVENTS, JOBS, TEMPORARY, Client
from harness import Board, options

AWAY = ("NOJOB", "NOWORKER", "EXISTS", "DEPENDED", "LIMIT", "ENDED", "NOTCLAIMED", "NOTENDED", "CLAIMED")


class Visitor(Client):
    """Any of them: its method named in `churn.PLAYERS` is one turn."""

    def waits(self) -> None:
        """Waits for jobs, queues and work; some go before they are answered."""
        draw = self.random
        ids = [job["id"] for job in self.board(JOBS).list(state=["ready", "claimed"], count=5)[1]]
        board = self.board(draw.choice([JOBS, EVENTS]))
        for words in (
            ["JOB.WAIT", JOBS, 200, "JOBS", len(ids), *ids, "ANY", "FIELDS", 1, "id"],
            ["JOB.WAIT", board.key, 100, "FOR", "claimable", "QUEUES", 1, self.fresh("nowhere")],
            ["JOB.WAIT", board.key, 100, "FOR", "empty"],
            ["JOB.CLAIM", board.key, self.fresh("idle"), "QUEUES", 1, self.fresh("nowhere"), "BLOCK", 150],
        ):
            if "JOBS" in words and not ids:
                continue
            if draw.random() < 0.3:
                connection = self.client.connection
                connection.send_command(*words)
                self.rest(0.02)
                self.reconnect()
                self.counts["left while waiting", ""] += 1
            else:
                self.client.execute_command(*words)
                self.counts["waited", ""] += 1
        self.rest(0.05)

    def listens(self) -> None:
        """Subscribes to what is published, reads for a while, and goes."""
        listener = self.client.pubsub()
        listener.subscribe(f"job.events:{EVENTS}", "job.worker:*")
        for _ in range(200):
            message = listener.get_message(timeout=0.02)
            self.counts["messages", EVENTS] += message is not None and message["type"] == "message"
            if self.stop.is_set():
                break
        listener.close()
        self.reconnect()

    def registers(self) -> None:
        """Workers that register, with a time or a connection, and lapse, leave or are made quiet."""
        board, draw = self.board(JOBS), self.random
        name = self.fresh("registered")
        how = draw.choice([{"for_": 500}, {"session": True}, {"for_": 60_000}])
        board.worker("REGISTER", name, role=draw.choice(["a", "b"]), meta={"host": "h"}, **how)
        jobs = board.claim(name, queues=["session"], count=2, fields=["id"])
        self.counts["claimed", JOBS] += len(jobs)
        if draw.random() < 0.3:
            self.expect(AWAY, lambda: board.worker("QUIET", name))
        if draw.random() < 0.1:
            board.worker_page(count=10)
        if "session" in how:
            self.reconnect()
        elif how["for_"] == 60_000 or draw.random() < 0.3:
            board.worker("DEREGISTER", name)
        self.rest(0.2)

    def operates(self) -> None:
        """An operator's day: by ids and by filters, settings, pauses, schedules, and a look at everything."""
        board, draw = self.board(JOBS), self.random
        self.expect(AWAY, lambda: draw.choice(self.deeds())(board))
        draw.choice(self.looks())(board)
        self.rest(0.2)

    def deeds(self) -> list:
        draw = self.random
        return [
            lambda board: board.where("cancel", queue="failing", state="scheduled", count=5),
            lambda board: board.where("cancel", queue="single", name="print", count=3, force=True),
            lambda board: board.where("requeue", kind="soak", state="failed", count=20),
            lambda board: board.where("delete", state=["failed", "trashed", "cancelled"], count=20),
            lambda board: board.where("release", queue="failing", count=2),
            lambda board: board.where(
                "update", queue="single", count=10, set_={"priority": draw.randrange(3), "track": True}
            ),
            lambda board: board.where("update", "SET", "TAG", 1, self.fresh("tag"), queue="flows", count=10),
            lambda board: board.where("update", "SET", "UNTAG", 1, "red", tag="red", count=5),
            lambda board: board.pause(queue="groups", group=f"tenant-{draw.randrange(200)}", for_=300),
            lambda board: board.pause(queue=draw.choice(["expiring", "session"]), for_=200, release=True),
            lambda board: board.set(queue="groups", group=f"tenant-{draw.randrange(200)}", weight=3),
            lambda board: board.client.execute_command(
                "JOB.SETTINGS",
                "RESET",
                board.key,
                "QUEUE",
                "groups",
                "GROUP",
                f"tenant-{draw.randrange(200)}",
            ),
            lambda board: self.set_and_reset(board),
            lambda board: self.schedule(board),
        ]

    def set_and_reset(self, board: Board) -> None:
        name = self.fresh("set")
        board.set(queue=name, lease=5000)
        board.client.execute_command("JOB.SETTINGS", "RESET", board.key, "QUEUE", name)

    def schedule(self, board: Board) -> None:
        """A schedule that lives for a while; the last one made goes first."""
        if self.number > 1 and "last" in vars(self):
            self.client.execute_command("JOB.SCHEDULE", "DEL", board.key, self.last)
        self.last = self.fresh("schedule")
        self.client.execute_command(
            "JOB.SCHEDULE", "SET", board.key, self.last, "tick", "EVERY", self.random.randrange(20, 500),
            *options(queue="waited", overlap=self.random.choice(["allow", "skip"]), expire=20_000),
        )  # fmt: skip

    def looks(self) -> list:
        client = self.client
        return [
            lambda board: board.info(),
            lambda board: board.call("STATS"),
            lambda board: board.list(state="ready", count=50),
            lambda board: board.list(name="mail", count=50),
            lambda board: board.groups(count=1000),
            lambda board: board.workers(),
            lambda board: board.kinds(),
            lambda board: board.tags(count=50),
            lambda board: [board.history(id) for id in board.list(justid=True, count=5)[1]],
            lambda board: client.execute_command("JOB.SCHEDULE", "LIST", board.key),
            lambda board: client.execute_command("INFO", "everything"),
            lambda board: client.memory_usage(board.key),
        ]

    def leaves(self) -> None:
        """Before the counts are compared: nothing more comes of schedules."""
        if "last" in vars(self):
            self.client.execute_command("JOB.SCHEDULE", "DEL", JOBS, self.last)

    def boards(self) -> None:
        """A board that is filled, half drained, copied or renamed, and goes in one of all the ways."""
        draw, key = self.random, TEMPORARY + self.fresh("board")
        board = self.board(key)
        jobs = max(int(3000 * self.scale), 20)
        board.mpost(["x" * 100] * jobs, queue="a", delay=draw.choice([0, 0, 300]))
        board.mpost(["x" * 10] * 50, queue="b", tags=["t"], name="n", meta={"a": "b"})
        self.client.execute_command("JOB.SCHEDULE", "SET", key, "tick", "x", "EVERY", 50, *options(queue="b"))
        board.worker("REGISTER", "w", for_=1000)
        board.claim("w", queues=[], count=100, fields=["id"], session=draw.random() < 0.5, lease=100)
        board.mconsume("w", "ALL")
        keys = [key]
        if draw.random() < 0.3:
            keys.append(key + ":copy")
            self.client.copy(key, keys[1])
        if draw.random() < 0.3:
            keys.append(key + ":restored")
            self.client.execute_command("RESTORE", keys[-1], 0, self._dump(key))
        if draw.random() < 0.3:
            self.client.rename(key, key + ":new")
            keys[0] = key + ":new"
        self.rest(0.3)
        self.counts["boards made", ""] += len(keys)
        way = draw.choice(["del", "unlink", "expire", "drained", "set"])
        for key in keys:
            if way == "expire":
                self.client.pexpire(key, 100)
            elif way == "set":
                self.client.set(key, "x", px=100)
            elif way == "drained":
                self._drain(self.board(key))
                self.client.delete(key)
            else:
                getattr(self.client, "delete" if way == "del" else way)(key)

    def _dump(self, key: str) -> bytes:
        connection = self.client.connection
        connection.send_command("DUMP", key)
        return connection.read_response(disable_decoding=True)

    def _drain(self, board: Board) -> None:
        self.client.execute_command("JOB.SCHEDULE", "DEL", board.key, "tick")
        while board.claim("w", queues=[], count=500, fields=["id"]):
            board.mconsume("w", "ALL")

"""Links that can be slow, stand still or break: a proxy before every server, in a process of its own.

`Links` starts it: `open` gives the port of a new link, `aim` says where it leads, `set` what is wrong.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

PIECE = 1 << 16


class Links:
    """The process of the proxy, from here."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _ask(self, **words: Any) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def open(self) -> int:
        """A new link; the port to connect to."""
        return self._ask(do="open")

    def aim(self, port: int, target: int) -> None:
        """The link leads to this port from now on."""
        self._ask(do="set", port=port, target=target)

    def set(self, port: int, *, delay: float = 0.0, still: bool = False, shut: bool = False) -> None:
        """Each byte comes so many seconds late, both ways; nothing moves; every connection is closed, and new
        ones as they come. What is not named is well again."""
        self._ask(do="set", port=port, delay=delay, still=still, shut=shut)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Link:
    """One port, and all connections through it."""

    def __init__(self) -> None:
        self.target: int | None = None
        self.delay = 0.0
        self.shut = False
        self.flows = asyncio.Event()
        self.flows.set()
        self.open: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task] = set()

    def change(self, words: dict) -> None:
        self.target = words.get("target", self.target)
        self.delay = words.get("delay", 0.0)
        self.shut = words.get("shut", False)
        if words.get("still"):
            self.flows.clear()
        else:
            self.flows.set()
        if self.shut:
            for writer in list(self.open):
                writer.transport.abort()

    def _keep(self, work: Coroutine) -> asyncio.Task:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        there: asyncio.StreamWriter | None = None
        try:
            if self.shut or self.target is None:
                return
            back, there = await asyncio.open_connection("127.0.0.1", self.target)
            ends = {writer, there}
            for one in ends:
                one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open |= ends
            ways = [self._keep(self._carry(reader, there)), self._keep(self._carry(back, writer))]
            await asyncio.wait(ways)
        except OSError:
            pass
        finally:
            for one in (writer, there):
                if one is not None:
                    self.open.discard(one)
                    one.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What comes on one side goes out on the other, late; its end as well."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue = asyncio.Queue(1000)

        async def read() -> None:
            piece = b"-"
            while piece:
                try:
                    piece = await reader.read(PIECE)
                except OSError:
                    piece = b""
                await pieces.put((loop.time() + self.delay, piece))

        task = self._keep(read())
        try:
            while True:
                at, piece = await pieces.get()
                await asyncio.sleep(max(at - loop.time(), 0))
                await self.flows.wait()
                if not piece:
                    break
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            task.cancel()
            # Either end is the end of both: clients of a server do not half close.
            writer.close()


async def run() -> None:
    loop = asyncio.get_running_loop()
    words = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    links: dict[int, Link] = {}
    while line := await words.readline():
        said = json.loads(line)
        answer = 0
        if said["do"] == "open":
            link = Link()
            server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
            answer = server.sockets[0].getsockname()[1]
            links[answer] = link
        else:
            links[said["port"]].change(said)
        print(answer, flush=True)


if __name__ == "__main__":
    asyncio.run(run())

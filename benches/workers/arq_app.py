"""arq: posts, job and settings of its worker."""

from __future__ import annotations

import asyncio
import sys

import job
from arq import create_pool
from arq.connections import RedisSettings


async def nothing(context) -> None:
    job.nothing()


class WorkerSettings:
    functions = [nothing]
    redis_settings = RedisSettings(port=job.port())
    keep_result = 0


async def post(count: int) -> None:
    pool = await create_pool(WorkerSettings.redis_settings)
    for start in range(0, count, 200):
        await asyncio.gather(*(pool.enqueue_job("nothing") for _ in range(min(200, count - start))))
    await pool.aclose()


if __name__ == "__main__":
    asyncio.run(post(int(sys.argv[1])))

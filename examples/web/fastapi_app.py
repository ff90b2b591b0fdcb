"""FastAPI: post a job, follow it by server-sent events, cancel it.

    uvicorn fastapi_app:app
    jobboard worker fastapi_app:board

Each browser that follows a job holds a connection to the server, as long as the job runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from jobboard import AsyncBoard, Context

board = AsyncBoard("web")
app = FastAPI()


@board.task(timeout="10m")
async def export(context: Context, rows: int) -> str:
    for row in range(rows):
        context.progress(100 * row / rows)
        await asyncio.sleep(0.05)
    return f"{rows} rows"


@app.post("/exports", status_code=202)
async def start(rows: int) -> dict[str, str]:
    return {"id": await export.post(rows)}


@app.get("/exports/{id}/events")
async def events(id: str) -> StreamingResponse:
    if await board.state(id) is None:
        raise HTTPException(404)

    async def stream() -> AsyncIterator[str]:
        async for job in board.watch(id, fields=["progress"]):
            yield f"data: {json.dumps({'state': job.state, 'progress': job.progress})}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


@app.delete("/exports/{id}", status_code=204)
async def cancel(id: str) -> None:
    await board.cancel(id)

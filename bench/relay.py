"""The bare relay: FastAPI and aiohttp, uvloop and httptools, and no logic at all.

python -m bench.relay PORT BACKEND_URL
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


def build(backend: str) -> FastAPI:
    """An app that posts every body on to `backend` and gives back what comes."""
    clients: list[aiohttp.ClientSession] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(base_url=backend, connector=connector) as session:
            clients.append(session)
            yield

    async def relay(request: Request) -> Response:
        body = await request.body()
        reply = await clients[0].post(
            "/v1/chat/completions", data=body, headers={"content-type": "application/json"}
        )
        if orjson.loads(body).get("stream"):
            return StreamingResponse(chunks(reply), media_type="text/event-stream")
        return Response(await reply.read(), media_type="application/json")

    async def chunks(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        async for chunk in reply.content.iter_any():
            yield chunk
        reply.release()

    app = FastAPI(lifespan=lifespan)
    app.router.routes.append(Route("/v1/chat/completions", relay, methods=["POST"]))
    return app


if __name__ == "__main__":
    uvicorn.run(
        build(sys.argv[2]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
    )

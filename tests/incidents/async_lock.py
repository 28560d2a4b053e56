# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + Starlette: a token is renewed under an asyncio.Lock while the coroutine awaits a slow service, and all requests wait for that lock."""
import asyncio

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lib import incident

MANIFEST = {
    "title": "`asyncio.Lock` held over an await",
    "cause": "asyncio lock",
    "words": [["lock", "task", "coroutine", "await"]],
    "clock": "holds",
    "packages": ["uvicorn", "starlette"],
}
token_lock = asyncio.Lock()
holds = incident.Clock("holds")


async def renew_token(service):
    async with token_lock:
        with holds:
            reader, writer = await asyncio.open_connection("127.0.0.1", service)
            writer.write(b"GET /token HTTP/1.1\r\n\r\n")
            await reader.readline()  # cause
            writer.close()


async def renew_forever(service):
    while True:
        await renew_token(service)
        await asyncio.sleep(0.02)


async def account(request):
    async with token_lock:  # waits
        return PlainTextResponse("ok")


async def begin(request):
    app.state.renewing = asyncio.create_task(renew_forever(request.path_params["service"]))
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/account", account), Route("/start/{service:int}", begin)])


def main():
    service, port = incident.slow_server(250), incident.uvicorn(__file__)
    incident.get(port, f"/start/{service}")
    incident.load(port, "/account", 4, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

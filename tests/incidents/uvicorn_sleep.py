# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + Starlette: a coroutine retries with time.sleep, which blocks the event loop and all other requests."""
import time

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lib import incident

MANIFEST = {
    "title": "uvicorn, `time.sleep` in a coroutine",
    "cause": "event loop",
    "words": [["sleep", "slept"]],
    "clock": "blocked",
    "packages": ["uvicorn", "starlette"],
}
blocked = incident.Clock("blocked")


async def fetch_rate():
    with blocked:
        time.sleep(0.15)  # cause
    return 1.08


async def rate(request):
    return PlainTextResponse(str(await fetch_rate()))


async def ping(request):
    return PlainTextResponse("pong")


app = Starlette(routes=[Route("/rate", rate), Route("/ping", ping)])


def main():
    port = incident.uvicorn(__file__)
    incident.load(port, "/rate", 1, 50)
    incident.load(port, "/ping", 4, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

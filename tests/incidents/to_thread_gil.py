# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + Starlette: reports are computed by asyncio.to_thread, whose thread has the GIL most of the time, and the loop waits for it."""
import asyncio

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lib import incident

MANIFEST = {
    "title": "`asyncio.to_thread` of Python code that computes",
    "cause": "GIL",
    "words": [["GIL"]],
    "must": "cause",
    "clock": None,
    "packages": ["uvicorn", "starlette"],
}


def compute_report(rows):
    return sum(row * row % 7 for row in range(rows))  # cause


async def report(request):
    return PlainTextResponse(str(await asyncio.to_thread(compute_report, 400_000)))


async def health(request):
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/report", report), Route("/health", health)])


def main():
    incident.clocks_folder()
    port = incident.uvicorn(__file__)
    incident.load(port, "/report", 2, 5)
    incident.load(port, "/health", 2, 1)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

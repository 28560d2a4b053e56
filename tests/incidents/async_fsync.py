# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + Starlette: a coroutine appends to an audit file and calls fsync, which holds up the event loop."""
import os

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lib import incident

MANIFEST = {
    "title": "uvicorn, fsync in a coroutine",
    "cause": "disk",
    "words": [["disk", "fsync"]],
    "clock": "syncs",
    "packages": ["uvicorn", "starlette"],
}
syncs = incident.Clock("syncs")


def write_audit(text):
    with open(os.path.join(incident.disk(), "audit.log"), "a") as f, syncs:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())  # cause


async def order(request):
    write_audit("order\n" * 50)
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/order", order)])


def main():
    incident.load(incident.uvicorn(__file__), "/order", 3, 1)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

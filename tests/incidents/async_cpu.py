# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + FastAPI: a coroutine that assembles an export computes for so long that it blocks the event loop."""
import json

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from lib import incident

MANIFEST = {
    "title": "uvicorn, a coroutine that computes",
    "cause": "event loop",
    "words": [["event loop", "CPU", "comput", "GIL"]],
    "must": "cause",
    "clock": "blocked",
    "packages": ["uvicorn", "fastapi"],
}
app = FastAPI()
blocked = incident.Clock("blocked")
ORDERS = [{"id": n, "items": [n, n + 1], "note": "x" * 20} for n in range(20_000)]


async def make_export():
    with blocked:
        return json.dumps([dict(order, total=sum(order["items"])) for order in ORDERS], indent=1)  # cause


@app.get("/export", response_class=PlainTextResponse)
async def export():
    return str(len(await make_export()))


@app.get("/ping", response_class=PlainTextResponse)
async def ping():
    return "pong"


def main():
    port = incident.uvicorn(__file__)
    incident.load(port, "/export", 1, 60)
    incident.load(port, "/ping", 3, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

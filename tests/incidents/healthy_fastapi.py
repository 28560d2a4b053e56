# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + FastAPI under light load: coroutines that await timers, and a blocking call in the thread pool where it belongs."""
import asyncio
import time

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from lib import incident

MANIFEST = {
    "title": "nothing: FastAPI under light load, with idle pool threads",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "condition", "quota", "throttl", "starv", "blocked", "held up", "queue", "pool.*waited"],
    "packages": ["uvicorn", "fastapi"],
}
app = FastAPI()


@app.get("/quote", response_class=PlainTextResponse)
async def quote():
    await asyncio.sleep(0.005)
    return "42"


@app.get("/report", response_class=PlainTextResponse)
def report():
    time.sleep(0.005)
    return "ok"


def main():
    port = incident.uvicorn(__file__)
    incident.load(port, "/quote", 3, 150)
    incident.load(port, "/report", 1, 300)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + FastAPI: a coroutine calls a slow service with requests, which blocks the event loop until the answer arrives."""
import requests
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from lib import incident

MANIFEST = {
    "title": "uvicorn, a blocking `requests.get` in a coroutine",
    "cause": "event loop",
    "words": [["event loop", "peer", "network", "port", "127.0.0.1", "socket", "answer"]],
    "clock": "blocked",
    "packages": ["uvicorn", "fastapi", "requests"],
}
app = FastAPI()
session = requests.Session()
blocked = incident.Clock("blocked")


@app.get("/profile/{service}", response_class=PlainTextResponse)
async def profile(service: int):
    with blocked:
        answer = session.get(f"http://127.0.0.1:{service}/user")  # cause
    return answer.text


@app.get("/ping", response_class=PlainTextResponse)
async def ping():
    return "pong"


def main():
    service = incident.slow_server(120)
    port = incident.uvicorn(__file__)
    incident.load(port, f"/profile/{service}", 1, 40)
    incident.load(port, "/ping", 4, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + Starlette: blocking calls run in an executor, as they should, but it has one thread, and the requests queue for it."""
import asyncio
import concurrent.futures

import requests
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from lib import incident

MANIFEST = {
    "title": "uvicorn, an executor of one thread",
    "cause": "executor",
    "words": [["executor", "pool", "peer", "port", "network", "answer"]],
    "clock": "busy",
    "packages": ["uvicorn", "starlette", "requests"],
}
executor = concurrent.futures.ThreadPoolExecutor(1)
session = requests.Session()
busy = incident.Clock("busy")


def fetch_stock(service):
    with busy:
        return session.get(f"http://127.0.0.1:{service}/stock").text  # cause


async def stock(request):
    return PlainTextResponse(await asyncio.get_running_loop().run_in_executor(executor, fetch_stock, request.path_params["service"]))


app = Starlette(routes=[Route("/stock/{service:int}", stock)])


def main():
    service = incident.slow_server(60)
    incident.load(incident.uvicorn(__file__), f"/stock/{service}", 6, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

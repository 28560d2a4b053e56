# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An asyncio crawler with an asyncio.Semaphore of one, so that its 20 tasks fetch one after the other."""
import asyncio
import os
import sys

from lib import incident

MANIFEST = {
    "title": "an `asyncio.Semaphore` of one for 20 tasks",
    "cause": "awaits",
    "words": [["semaphore", "await", "task", "coroutine"]],
    "clock": "fetches",
    "packages": [],
}
fetches = incident.Clock("fetches")


async def fetch(port, slots):
    async with slots:  # waits
        with fetches:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /page HTTP/1.1\r\n\r\n")
            await reader.readline()  # cause
            writer.close()


async def crawl(port):
    slots = asyncio.Semaphore(1)
    while True:
        await asyncio.gather(*[fetch(port, slots) for _ in range(20)])


def main():
    if sys.argv[1:]:
        print(flush=True)
        asyncio.run(crawl(int(sys.argv[1])))
    port = incident.slow_server(40)
    incident.clocks_folder()
    incident.again(os.path.abspath(__file__), str(port))
    incident.serve(__file__)


if __name__ == "__main__":
    main()

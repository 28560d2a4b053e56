# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An asyncio job that awaits its requests one after the other, though nothing prevents it from awaiting them together."""
import asyncio
import os
import sys

from lib import incident

MANIFEST = {
    "title": "requests awaited one after the other",
    "cause": "awaits",
    "words": [["another process", "await", "task", "coroutine"]],
    "clock": "requests",
    "packages": [],
}
requests = incident.Clock("requests")


async def fetch(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /{number} HTTP/1.1\r\n\r\n".encode())
    line = await reader.readline()  # waits
    writer.close()
    return line


async def collect(port):
    while True:
        for number in range(10):
            with requests:
                await fetch(port, number)  # cause


def main():
    if sys.argv[1:]:
        print(flush=True)
        asyncio.run(collect(int(sys.argv[1])))
    port = incident.slow_server(120)
    incident.clocks_folder()
    incident.again(os.path.abspath(__file__), str(port))
    incident.serve(__file__)


if __name__ == "__main__":
    main()

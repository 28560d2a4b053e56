# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An asyncio server with occasional requests, timers and no blocking call."""
import asyncio
import os
import sys

from lib import incident

MANIFEST = {
    "title": "nothing: an idle asyncio server",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "fsync", "condition", "quota", "throttl", "starv", "blocked", "held up", "slept", "peer"],
    "packages": [],
}


async def answer(reader, writer):
    while line := await reader.readline():
        if line == b"\r\n":
            await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
            await writer.drain()
    writer.close()


async def heartbeat():
    while True:
        await asyncio.sleep(0.5)


async def listen(port):
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    beating = asyncio.create_task(heartbeat())
    async with server:
        await server.serve_forever()
    await beating


def main():
    if sys.argv[1:]:
        asyncio.run(listen(int(sys.argv[1])))
    port = incident.free_port()
    incident.start(sys.executable, os.path.abspath(__file__), port)
    incident.wait_port(port)
    incident.load(port, "/", 3, 150)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

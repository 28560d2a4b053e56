#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=120
# case: right | asyncio: a lock is held over an await, and all stacks of threads show `asyncio.run(main())` |
"""The first finding says how many tasks wait, in which line, which task holds the lock, and for whose reply that one waits by way of another
task. `dump` has this as a tree."""
import re
import sys

from case import finish, first, say, script, start
from tap import ok

WORK = script("session.py", """import asyncio
async def fetch(reader, writer):
    writer.write(b"user\\n")
    return await reader.readline()  # fetch
async def token(reader, writer):
    while True:
        async with lock:
            await asyncio.gather(fetch(reader, writer))  # token
        await asyncio.sleep(.01)
async def request():
    while True:
        async with lock:  # request
            await asyncio.sleep(0)
        await asyncio.sleep(.01)
async def answer(reader, writer):
    while await reader.readline():
        await asyncio.sleep(.3)
        writer.write(b"done\\n")
async def main():
    global lock
    lock = asyncio.Lock()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("port", port, flush=True)
    connection = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(token(*connection), *[request() for _ in range(29)])
asyncio.run(main())
""")


def line_of(function):
    with open(WORK, encoding="utf-8") as f:
        return next(f"{function} (session.py:{i + 1})" for i, line in enumerate(f) if line.endswith(f"# {function}\n"))


program = start(sys.executable, WORK, until="port")
port = program.lines[-1].split()[1]
found = first(program.pid, 3)
text = found["text"]
ok(found["kind"] == "lock" and re.search(r" \(29 of 3\d(\.\d)? asyncio tasks\) waited ", text) and f" for a lock in {line_of('request')}" in text,
   "how many tasks wait, and where", text)
ok(f"held by {line_of('token')}, which awaited a reply from 127.0.0.1:{port} in {line_of('fetch')}." in text, "the holder, and for what it waits", text)
tree = say("dump", program.pid)
tree = tree[tree.find("asyncio tasks"):]
indents = {name: next((line.index(name) for line in tree.splitlines() if name in line), None) for name in ("main (", "token (", "fetch (", "request (")}
ok(None not in indents.values() and indents["main ("] < indents["token ("] == indents["request ("] < indents["fetch ("] and f"for 127.0.0.1:{port}" in tree,
   "the tree of tasks", tree)
finish()

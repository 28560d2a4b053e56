# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Asyncio tasks for test_tasks.py. "lock": ten of them wait for a lock that another one holds for most of the time; SIGUSR1 makes the
process execute this program again. "large": the same, and 300 coroutines have line tables of 1 MiB. "peer": one awaits
answers of a slow server. "server": a server waits for its clients' next requests. "late": a loop has no task for its first 14 s.
"native": the stack of a loop has no function of asyncio while it waits, and the process maps a file like that of uvloop, whose loop
is such a one. "stuck": two tasks wait for each other's locks, and the loop never wakes. Prints from when to when the lock was held
(CLOCK_MONOTONIC, ns), a line for each time.
"""
import _ctypes
import asyncio
import heapq
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import types

async def refresh(lock):
    """The times differ, as equal ones could keep in step with those at which tasks are read."""
    while True:
        async with lock:
            began = time.monotonic_ns()
            await asyncio.sleep(random.uniform(0.2, 0.5))
            print(began, time.monotonic_ns(), flush=True)
        await asyncio.sleep(random.uniform(0.1, 0.3))


async def handle(lock):
    while True:
        async with lock:
            pass
        await asyncio.sleep(0.005)


async def pay(mine, other):
    async with mine:
        await asyncio.sleep(0.01)
        async with other:
            pass


async def reply(reader, writer):
    while await reader.readline():
        await asyncio.sleep(0.13)
        writer.write(b"done\n")


async def serve(reader, writer):
    while await reader.readline():
        writer.write(b"done\n")


async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"do\n")
        await reader.readline()
        await asyncio.sleep(0.06)


async def idle(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        await asyncio.sleep(0.3)
        writer.write(b"do\n")


def late():
    loop = asyncio.new_event_loop()
    tasks = []

    def beat():
        if time.monotonic() > began + 14 and not tasks:
            lock = asyncio.Lock()
            tasks.extend(loop.create_task(task) for task in (refresh(lock), handle(lock)))
        loop.call_later(0.05, beat)

    began = time.monotonic()
    print("began", flush=True)
    beat()
    loop.run_forever()


def native():
    folder = os.path.join(tempfile.mkdtemp(), "uvloop")
    os.mkdir(folder)
    copy = shutil.copy(_ctypes.__file__, os.path.join(folder, "loop.so"))
    with open(copy, "rb") as file:
        code = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    shutil.rmtree(os.path.dirname(folder))
    loop = asyncio.new_event_loop()
    asyncio._set_running_loop(loop)
    lock = asyncio.Lock()
    tasks = [loop.create_task(task) for task in (refresh(lock), handle(lock))]
    while tasks and code:
        timers, ready = loop._scheduled, loop._ready
        loop._process_events(loop._selector.select(0 if ready else max(0, timers[0].when() - loop.time())))
        while timers and timers[0].when() <= loop.time():
            ready.append(heapq.heappop(timers))
        for _ in range(len(ready)):
            ready.popleft()._run()


def large():
    """Coroutine functions that differ in their code objects, which share one line table"""
    lines = bytes(1 << 20)
    return [types.FunctionType(handle.__code__.replace(co_name=f"handle{i}", co_linetable=lines), globals()) for i in range(300)]


async def main():
    tasks = []
    if sys.argv[1] == "stuck":
        one, other = asyncio.Lock(), asyncio.Lock()
        await asyncio.gather(pay(one, other), pay(other, one))
    if sys.argv[1] in ("lock", "large"):
        signal.signal(signal.SIGUSR1, lambda *_: os.execv(sys.executable, [sys.executable, *sys.argv]))
        lock = asyncio.Lock()
        tasks = [asyncio.create_task(refresh(lock))] + [asyncio.create_task(handle(lock)) for _ in range(10)]
        tasks += [asyncio.create_task(f(lock)) for f in large()] if sys.argv[1] == "large" else []
    else:
        server = await asyncio.start_server(reply if sys.argv[1] == "peer" else serve, "127.0.0.1", 0)
        client = ask if sys.argv[1] == "peer" else idle
        tasks = [asyncio.create_task(client(server.sockets[0].getsockname()[1]))]
    print(flush=True)
    await asyncio.gather(*tasks)


if sys.argv[1] in ("late", "native"):
    {"late": late, "native": native}[sys.argv[1]]()
asyncio.run(main())

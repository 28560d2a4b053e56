# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Asyncio tasks that wait in several ways. Prints each task's stack as CPython itself sees it: cr_await from coroutine to coroutine."""
import asyncio
import json


async def renew(lock):
    async with lock:
        await asyncio.sleep(1000)


async def handle(lock):
    async with lock:
        pass


class Shop:
    async def sell(self, event):
        for _ in range(2):
            await self.wait(event)

    async def wait(self, event):
        await event.wait()


async def rows():
    await asyncio.sleep(1000)
    yield 1


async def read_all():
    async for _ in rows():
        pass


async def take(queue):
    return await queue.get()


async def compute(event):
    event.set()
    await asyncio.sleep(1000)


def frames_of(task):
    at, frames = task.get_coro(), []
    while at is not None:
        # coroutines, and asynchronous generators; the iterator of `async for` does not show its generator
        frame = getattr(at, "cr_frame", None) or getattr(at, "ag_frame", None)
        if not frame:
            break
        frames.append([frame.f_code.co_filename, frame.f_lineno, at.__qualname__])
        at = getattr(at, "cr_await", None) or getattr(at, "ag_await", None)
    return frames[::-1]


async def main():
    lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue()
    tasks = [asyncio.create_task(renew(lock))]
    await asyncio.sleep(0.05)
    for number in range(150):
        tasks += [asyncio.create_task(handle(lock))]
        if number < 3:
            tasks += [asyncio.create_task(Shop().sell(event)), asyncio.create_task(take(queue))]
    tasks += [asyncio.create_task(read_all())]
    done = [asyncio.create_task(asyncio.sleep(0)) for _ in range(50)]
    await asyncio.sleep(0.2)
    del done
    print(json.dumps([frames_of(task) for task in tasks]), flush=True)
    await asyncio.gather(*tasks)


asyncio.run(main())

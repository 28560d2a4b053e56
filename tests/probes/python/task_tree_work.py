# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Asyncio tasks that await each other in all ways, in two loops. Prints {name: [coroutines, by (file, line, function) from the innermost one
on]} of all tasks that wait, and [waiter, awaited] by their names; from 3.14 on also that by asyncio.capture_call_graph. Then one task blocks
the loop, and another one is ready to run. With an argument "uvloop" the loops are those of uvloop.
"""
import asyncio
import json
import sys
import threading
import time

AWAITS, GRAPH = [], []


def task(name, coroutine):
    created = asyncio.get_running_loop().create_task(coroutine)
    created.set_name(name)
    return created


async def leaf():
    await asyncio.sleep(1000)


def leaves(parent, n=2):
    """Tasks that the task `parent` awaits"""
    names = ["%s/%d" % (parent, i) for i in range(n)]
    AWAITS.extend([parent, name] for name in names)
    return [task(name, leaf()) for name in names]


async def gathers(name):
    inner = task(name + "/all", asyncio.wait(leaves(name + "/all", 3)))
    AWAITS.append([name, name + "/all"])
    await asyncio.gather(asyncio.gather(*leaves(name)), inner)


async def waits_for_one(name):
    await asyncio.wait_for(leaves(name, 1)[0], 1000)


async def waits(name):
    await asyncio.wait(leaves(name))


async def shields(name):
    await asyncio.shield(leaves(name, 1)[0])


async def awaits(other):
    await other


async def awaits_by_name(others, name):
    await others[name]


async def groups(name):
    async with asyncio.TaskGroup() as group:
        for i in range(2):
            created = group.create_task(leaf())
            created.set_name("%s/%d" % (name, i))
            AWAITS.append([name, created.get_name()])


def ways():
    """The tasks of one loop"""
    kinds = [gathers, waits, waits_for_one, shields] + ([groups] if sys.version_info >= (3, 11) else [])
    tasks = [task(kind.__name__, kind(kind.__name__)) for kind in kinds]
    shared = leaves("direct", 1)[0]
    tasks.append(task("direct", awaits(shared)))
    # awaited by two tasks
    AWAITS.append(["direct2", "direct/0"])
    tasks.append(task("direct2", awaits(shared)))
    # each other
    circle = {}
    for name, other in (("left", "right"), ("right", "left")):
        circle[name] = task(name, awaits_by_name(circle, other))
        AWAITS.append([name, other])
    return [*tasks, *circle.values()]


def frames_of(of):
    at, frames = of.get_coro(), []
    while getattr(at, "cr_frame", None):
        frames.append([at.cr_frame.f_code.co_filename, at.cr_frame.f_lineno, at.__qualname__])
        at = at.cr_await
    return frames[::-1]


def others():
    return [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


def add_graph():
    # capture_call_graph does not end for tasks that await each other
    for t in others() if sys.version_info >= (3, 14) else []:
        if t.get_name() not in ("left", "right"):
            GRAPH.extend([waiter.future.get_name(), t.get_name()] for waiter in asyncio.capture_call_graph(t).awaited_by)


async def second(stacks, done):
    if sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    tasks = [task("thread", waits("thread"))]
    await asyncio.sleep(0.1)
    stacks.update({t.get_name(): frames_of(t) for t in others()})
    add_graph()
    done.set()
    await asyncio.gather(*tasks)


async def main():
    stacks, done = {}, threading.Event()
    threading.Thread(target=lambda: asyncio.run(second(stacks, done)), daemon=True).start()
    done.wait()
    tasks = ways()
    await asyncio.sleep(0.2)
    stacks.update({t.get_name(): frames_of(t) for t in others()})
    add_graph()
    print(json.dumps([stacks, AWAITS, GRAPH]), flush=True)
    tasks.append(task("new", leaf()))
    time.sleep(1000)


if "uvloop" in sys.argv:
    import uvloop
    uvloop.install()


asyncio.run(main())

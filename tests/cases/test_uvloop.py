#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | uvloop: its compiled loop calls the callbacks, so no function of asyncio is on their stacks |
"""The callback that sleeps, waits or computes blocked the event loop so many times, as with asyncio's own loop, however the loop was started.
One that blocks it for longer than the recording is not idle; a loop without such a callback is."""
import os

from case import FOLDER, finish, first, script, start
from pip_packages import install
from tap import ok, skip_all

WORK = script("loop.py", """import asyncio, queue, sys, time, uvloop
how, name = sys.argv[1:]
def sleep(): time.sleep(.1)
def long(): time.sleep(900)
def wait():
    try: queue.Queue().get(timeout=.1)
    except queue.Empty: pass
def compute():
    end = time.monotonic() + .1; x = 0
    while time.monotonic() < end:
        for _ in range(1000): x = (x * 31 + 7) % 1000003
async def caller(function):
    while True:
        function()
        await asyncio.sleep(.001)
async def other():
    while name != "nothing": await asyncio.sleep(.01)
async def main():
    tasks = [asyncio.ensure_future(other()) for _ in range(20)]
    print("ready", flush=True)
    await (asyncio.sleep(900) if name == "nothing" else caller(globals()[name]))
if how == "new": uvloop.new_event_loop().run_until_complete(main())
else: (uvloop if how == "run" else asyncio).run(main())
""")
CASES = [(how, name, kind) for how in ("new", "run", "asyncio") for name, kind in (("sleep", ["sleep"]), ("compute", ["compute", "cpu"]))]
CASES += [("new", "wait", ["queue"]), ("new", "long", ["sleep"])]

python = os.path.join(FOLDER, "venv/bin/python")
if not install(python, "uvloop==0.23.0"):
    skip_all("uvloop can't be installed")
for how, name, kinds in CASES:
    program = start(python, WORK, how, name, until="ready")
    found = first(program.pid)
    program.kill()
    ok(found["kind"] in kinds and found["code"]["function"] == name and (name == "long" or "it blocked the event loop" in found["text"]),
       f"{how}: {name}", found["text"])
program = start(python, WORK, "new", "nothing", until="ready")
found = first(program.pid)
ok(found["kind"] == "idle", "an idle loop", found["text"])
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=120
# case: right | trio: its loop has no function of asyncio, and is called run, like many |
"""The function that sleeps or computes in a trio task blocked the event loop so many times; a loop whose tasks only sleep is idle."""
import os

from case import FOLDER, finish, first, script, start
from pip_packages import install
from tap import ok, skip_all

WORK = script("loop.py", """import sys, time, trio
name = sys.argv[1]
def sleep(): time.sleep(.2)
def compute():
    end = time.monotonic() + .2; x = 0
    while time.monotonic() < end:
        for _ in range(1000): x = (x * 31 + 7) % 1000003
async def caller():
    while True:
        globals()[name]()
        await trio.sleep(.001)
async def tick():
    while True: await trio.sleep(.01 if name != "nothing" else 900)
async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(20): nursery.start_soon(tick)
        if name != "nothing": nursery.start_soon(caller)
        print("ready", flush=True)
trio.run(main)
""")
python = os.path.join(FOLDER, "venv/bin/python")
if not install(python, "trio==0.32.0"):
    skip_all("trio can't be installed")
for name, kinds in (("sleep", ["sleep"]), ("compute", ["compute", "cpu"]), ("nothing", ["idle"])):
    program = start(python, WORK, name, until="ready")
    found = first(program.pid)
    program.kill()
    blocked = ("it blocked the event loop", "an event loop called it, and was blocked meanwhile")
    ok(found["kind"] in kinds and (name == "nothing" or (found["code"]["function"] == name and any(text in found["text"] for text in blocked))),
       name, found["text"])
finish()

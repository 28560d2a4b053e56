#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | trio, Twisted, tornado: a callback or coroutine that calls code which blocks |
"""The callback or coroutine that sleeps, waits or computes blocked the event loop so many times. What the loop gave to another thread did not."""
import os

from case import FOLDER, finish, first, script, start
from pip_packages import install
from tap import ok, skip_all

WORK = script("blocks.py", """import select, sys, time
library, name = sys.argv[1:]
def sleep(): time.sleep(.1)
def wait(): select.select([], [], [], .1)
def compute():
    end = time.monotonic() + .1; x = 0
    while time.monotonic() < end: x = (x * 31 + 7) % 1000003
block = globals()[name.removeprefix("thread-")]
def with_trio():
    import trio
    async def caller():
        while True:
            await trio.to_thread.run_sync(block) if name.startswith("thread-") else block()
            await trio.sleep(.01)
    trio.run(caller)
def with_twisted():
    from twisted.internet import reactor, task, threads
    call = (lambda: threads.deferToThread(block)) if name.startswith("thread-") else block
    task.LoopingCall(call).start(.11)
    reactor.run()
def with_tornado():
    from tornado.ioloop import IOLoop, PeriodicCallback
    PeriodicCallback((lambda: IOLoop.current().run_in_executor(None, block)) if name.startswith("thread-") else block, 110).start()
    IOLoop.current().start()
print("ready", flush=True)
globals()["with_" + library]()
""")
KINDS = {"sleep": ["sleep"], "wait": ["peer"], "compute": ["compute", "cpu"]}

python = os.path.join(FOLDER, "venv/bin/python")
if not install(python, "trio==0.35.0", "Twisted==26.10.0", "tornado==6.6.1"):
    skip_all("trio can't be installed")
for library in ("trio", "twisted", "tornado"):
    for name in ("sleep", "wait", "compute", "thread-sleep"):
        program = start(python, WORK, library, name, until="ready")
        found = first(program.pid, 1)
        program.kill()
        blocked = "it blocked the event loop" in found["text"]
        ok(not blocked if name == "thread-sleep" else blocked and found["kind"] in KINDS[name] and found["code"]["function"] == name,
           f"{library}: {name}", found["text"])
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: right | py-spy: a main thread that waits for its own threads is called idle |
"""A main thread in `q.get()`, `join()` or `Future.result()` waits for its thread that works, and is not idle; the first line is that thread's work."""
import json

from case import finish, record, say, script, start
from tap import ok

WORK = script("main.py", """import concurrent.futures, queue, sys, threading
q = queue.Queue()
def work():
    print("ready", flush=True)
    x = 0
    while True: x = (x * 31 + 7) % 1000003
if sys.argv[1] == "result":
    concurrent.futures.ThreadPoolExecutor(1).submit(work).result()
thread = threading.Thread(target=work, daemon=True)
thread.start()
q.get() if sys.argv[1] == "get" else thread.join()
""")

for how in ("get", "join", "result"):
    program = start("/usr/bin/python3", WORK, how, until="ready")
    report = json.loads(say("report", record("-d", "1", "-p", program.pid), "--format", "json"))
    causes = {row["cause"] for row in report["tables"]["causes"]}
    ok("result" in causes and "idle" not in causes and report["findings"][0]["code"]["function"] == "work", how, causes, report["findings"][0])
    program.kill()
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy: names of threads |
"""`sonde dump` names threads as each CPython's module threading does: names that were given, changed, long, equal or not ASCII."""
import ast
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
from sonde_cli import SONDE, tables
from tap import done, ok

WORK = """
import threading, time
class Named(threading.Thread):
    def __init__(self, name):
        self.first, self.second = 1, 2
        super().__init__(target=time.sleep, args=[600], name=name, daemon=True)
        self.extra = "before " + name
threads = [threading.Thread(target=time.sleep, args=[600], name=n, daemon=True) for n in ("parser", "n" * 60, "fr\\u00fch", "twin", "twin", None)]
threads += [Named("with attributes")]
for t in threads:
    t.start()
threads[0].name = "renamed"
vars(threads[1])["more"] = 1
print(ascii({t.native_id: t.name for t in threads + [threading.main_thread()]}), flush=True)
time.sleep(600)
"""


def check(python):
    root = [] if python.root == "/" else ["/usr/sbin/chroot", python.root]
    work = subprocess.Popen(root + [python.exe, "-S", "-c", WORK], stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        names = ast.literal_eval(work.stdout.readline())
        text = subprocess.run([SONDE, "dump", str(work.pid)], capture_output=True, text=True, check=True).stdout
        found = {t["tid"]: t["python_name"] or t["name"] for t in tables("dump", str(work.pid))["threads"]}
    finally:
        work.kill()
        work.wait()
    # seven threads sleep at the same place
    same = [line.split(", ") for line in text.splitlines() if line.startswith("    the same: ")]
    ok([len(s) for s in same] == [6], f"threads with equal stacks are grouped, {python.name}", text)
    ok(found == names, f"names of threads, {python.name}", f"{found}, not {names}")


gil_lib.each_python("names of threads", check)
done()

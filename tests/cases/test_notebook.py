#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, scalene, viztracer: cells of notebooks, code of exec(), lambdas and decorated functions |
"""A cell of a notebook has its function's name and line; a text of exec() that of its caller; a decorated method its own."""
from case import finish, record, say, script, start
from tap import ok

program = start("/usr/bin/python3", script("kernel.py", """import functools, os, time
scope = {"time": time}
def run_cell(n, text):
    exec(compile(text, f"/tmp/ipykernel_{os.getpid()}/{n}.py", "exec"), scope)
run_cell(1732, '''def slow():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        [x * x for x in range(150)]
''')
exec("nap = lambda: time.sleep(0.1)", scope)
def timed(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper
class Model:
    @timed
    def step(self):
        scope["slow"]()
        scope["nap"]()
print("ready", flush=True)
model = Model()
while True:
    model.step()
"""), until="ready")
trace = record("-d", 2, "-F", 199, "-p", program.pid)
text = say("report", trace)
ok("% in slow (1732.py:4) with all that it calls" in text, "the cell by its name and line", text)
ok(" in Model.step (kernel.py:20)" in text, "the text of exec() by the line that calls it", text)
folded = say("export", trace, "--to", "folded")
ok(";timed.<locals>.wrapper (kernel.py);Model.step (kernel.py);slow (1732.py)" in folded, "the stack has each by its own name", folded)
finish()

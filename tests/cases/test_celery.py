#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | celery, uWSGI, vllm: several commands of one program, all with the name of its file |
"""A command is called by the words of its command line, "celery worker", `python -m celery` by its module; the first
line names the task's function."""
import os
import subprocess
import time

import pip_packages
from case import FOLDER, finish, record, say, script, start
from sonde_cli import tables
from tap import ok, skip_all

APP = """from celery import Celery
app = Celery("app", broker="memory://", backend="cache+memory://")
@app.task
def crunch():
    x = 0
    while True:
        x = (x * 31 + 7) % 1000003
@app.on_after_finalize.connect
def begin(sender, **_):
    import threading
    threading.Thread(target=crunch, daemon=True).start()
"""

SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
python = os.path.join(FOLDER, "venv/bin/python")
if not pip_packages.install(python, "celery"):
    skip_all("celery can't be installed")
script("app.py", APP)
celery = os.path.join(FOLDER, "venv/bin/celery")
worker = start(celery, "-A", "app", "worker", "-c", "2", cwd=FOLDER, **SILENT)
threads = start(python, "-um", "celery", "-A", "app", "worker", "--pool", "threads", "-c", "1", cwd=FOLDER, **SILENT)
time.sleep(6)
path = record("-d", "2", "-F", "99", "-p", f"{worker.pid},{threads.pid}")
got = [r["name"].strip() for r in tables("report", path, "processes")["processes"]]
ok(sorted(got) == ["celery"] + ["celery worker"] * 3, "a master, its pool and another master", got)
text = say("report", path)
ok(text.startswith("celery ") and "in crunch (app.py:" in " ".join(text.split()), "findings", text)
for program in worker, threads:
    program.terminate()
    program.wait()
finish()

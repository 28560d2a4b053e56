#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | gunicorn, celery: master and workers have the same 15 bytes, or the name of the interpreter |
"""Processes that give themselves titles are called by all of these, "gunicorn: worker [app:app]", and not by the kernel's 15 bytes."""
import os
import time

import pip_packages
from case import FOLDER, finish, record, say, script, start
from tap import ok, skip_all

APP = """import threading
def crunch():
    x = 0
    while True:
        x = (x * 31 + 7) % 1000003
def app(environ, respond):
    respond("200 OK", [])
    return [b"x"]
threading.Thread(target=crunch, daemon=True).start()
"""

python = os.path.join(FOLDER, "venv/bin/python")
if not pip_packages.install(python, "gunicorn", "setproctitle"):
    skip_all("gunicorn can't be installed")
script("app.py", APP)
master = start(os.path.join(FOLDER, "venv/bin/gunicorn"), "-w", "2", "-b", "127.0.0.1:0", "app:app", cwd=FOLDER)
time.sleep(2)
text = say("report", record("-d", "2", "-p", master.pid))
ok("\ngunicorn: worker [app:app] " in "\n" + text, "a worker", text)
ok("gunicorn: master [app:app]" in text, "the master", text)
master.terminate()
master.wait()
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Replaces sonde in tests that tests/vm/together.py runs: they share one recording of every family and process.

`joined record ...` registers in the directory $JOINED, reports that tracing began when it did, ends when the recording that the
test asked for would end, and leaves the common trace where the test asked for its own. Other commands are sonde's.
"""
import os
import shutil
import signal
import sys
import time

DIR, REAL = os.environ["JOINED"], os.environ["SONDE_REAL"]


def wait_until(condition):
    while not condition():
        time.sleep(0.05)


def put(name, text=""):
    with open(os.path.join(DIR, name + ".new"), "w") as f:
        f.write(text)
    os.rename(os.path.join(DIR, name + ".new"), os.path.join(DIR, name))


def exists(name):
    return os.path.exists(os.path.join(DIR, name))


def value_of(args, *names):
    return next((args[i + 1] for i, a in enumerate(args[:-1]) if a in names), None)


def main():
    args = sys.argv[1:]
    if not args or args[0] != "record":
        os.execv(REAL, [REAL, *args])
    stopped = []
    signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
    me, path = os.getpid(), value_of(args, "-o")
    pid, seconds = value_of(args, "-p"), float(value_of(args, "-d") or 1e9)
    put(f"ready.{me}", "\n".join(a for a in args if a.startswith("--")))
    wait_until(lambda: exists(f"go.{me}"))
    with open(os.path.join(DIR, f"go.{me}")) as f:
        trace = f.read()
    print(f"sonde: tracing into {path}", file=sys.stderr, flush=True)
    until = time.monotonic() + seconds
    wait_until(lambda: stopped or time.monotonic() > until or (pid and not os.path.exists(f"/proc/{pid}")))
    put(f"done.{me}")
    wait_until(lambda: exists(f"end.{me}"))
    with open(os.path.join(DIR, f"end.{me}")) as f:
        status, _, messages = f.read().partition("\n")
    if os.path.exists(trace):
        shutil.copy(trace, path)
    print(messages, file=sys.stderr, flush=True)
    sys.exit(int(status))


main()

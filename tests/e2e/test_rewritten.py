#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""A probed library that is overwritten repeatedly: each change costs sonde about 100 ms, so that after a few changes it is left out
until it has been unchanged for a while."""
import ctypes
import mmap
import os
import re
import select
import shutil
import subprocess
import sys
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_trace import Trace
from tap import done, ok, skip

CHANGES_MAX = 4  # user/record/discover/changed.c
LIBRARY, TRACE = os.path.join(TMP, "libcudart.so.77"), os.path.join(TMP, "rewritten.sonde")
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
number, lines, printed = 0, "", b""


def listen(sonde, seconds):
    """Reads sonde's messages for some seconds."""
    global lines, printed
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for f in select.select([sonde.stderr, sonde.stdout], [], [], 0.05)[0]:
            data = os.read(f.fileno(), 65536)
            if f is sonde.stderr:
                lines += data.decode()
            else:
                printed += data


def rewrite(sonde, wait):
    """Overwrites the file, maps it as code and lets sonde probe it."""
    with open(FAKE, "rb") as f, open(LIBRARY, "r+b") as to:
        to.write(f.read())
    with open(LIBRARY, "rb") as f:
        with mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC):
            listen(sonde, wait)


def is_seen(sonde, seconds):
    """True if a call of the library's current contents is recorded within this time."""
    global printed
    printed, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        child = subprocess.Popen([sys.executable, "-c", f"import ctypes,time\nl=ctypes.CDLL({LIBRARY!r})\nfor _ in range(20):\n"
                                  " l.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 64)\n time.sleep(0.05)"])
        child.wait()
        listen(sonde, 0.5)
        if re.search(rf" {child.pid}/{child.pid} .*cudaMalloc", printed.decode(errors="replace")):
            return True
    return False


def main():
    if not os.path.exists(FAKE):
        skip("a library that is overwritten", "the library of the test is not built")
        done()
    shutil.copy(FAKE, LIBRARY)
    ctypes.CDLL(FAKE)
    sonde = subprocess.Popen([SONDE, "record", "-t", "cuda", "--cuda=all", "--print", "-f", "-o", TRACE], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(os.environ, SONDE_TEST="short-rest"))
    while "tracing into" not in lines:
        listen(sonde, 0.2)
    ok(is_seen(sonde, 60), "the library is probed", lines)
    end = time.monotonic() + 60
    while "not probed again until" not in lines and time.monotonic() < end:
        rewrite(sonde, 0.5)
    ok(lines.count("it was overwritten in place") == CHANGES_MAX and lines.count("not probed again until") == 1,
       f"overwritten {CHANGES_MAX} times the library is left out, with a message", lines)
    for _ in range(20):
        rewrite(sonde, 0.05)
    ok(lines.count("it was overwritten in place") == CHANGES_MAX, "it is not probed while it is overwritten", lines)
    ok(is_seen(sonde, 60), "it is probed again when it has been unchanged for a while", lines)
    sonde.terminate()
    sonde.communicate(timeout=60)
    trace = Trace(TRACE)
    texts = {e["string"]: e["text"] for e in trace.events("meta_string")}
    objects = [e for e in trace.events("meta_object") if texts[e["path"]] == LIBRARY and e["sites"]]
    ok(sonde.returncode == 3 and len(objects) == CHANGES_MAX + 1, "the trace has each time that it was probed",
       (sonde.returncode, [o["object"] for o in objects]))


main()
done()

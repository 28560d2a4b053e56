#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""A cgroup reaches its memory limit as often as the kernel counts it; another one, with room, is not recorded."""
import json
import os
import subprocess
import sys
import tempfile
import time

import bounds
from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

LIMIT, SIZE = 32 << 20, 256 << 20
# Reads a file that is larger than the limit, page by page
READER = """
import mmap, os, random, sys
with open(sys.argv[2] + "/cgroup.procs", "w") as f:
    f.write(str(os.getpid()))
with open(sys.argv[1], "rb") as f:
    data = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
data.madvise(mmap.MADV_RANDOM)
def look_up():
    return data[random.randrange(len(data))]
print("reading", flush=True)
while True:
    look_up()
"""


def make_cgroup(limit):
    """(A new cgroup with this limit, the file that counts how often it was reached)"""
    for top, name, counter in (("/sys/fs/cgroup", "memory.max", "memory.events.local"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.failcnt")):
        if not os.path.exists(top + "/cgroup.procs"):
            continue
        try:
            folder = tempfile.mkdtemp(prefix="sonde-test-", dir=top)
            with open(f"{folder}/{name}", "w") as f:
                f.write(str(limit))
        except OSError as e:
            skip_all(f"no cgroup with a memory limit can be made: {e.strerror}")
        return folder, f"{folder}/{counter}"
    return skip_all("no cgroup can have a memory limit here")


def reached(counter):
    with open(counter) as f:
        words = f.read().split()
    return int(words[words.index("max") + 1] if "max" in words else words[0])


def findings(path):
    done = subprocess.run([os.environ["SONDE"], "report", path, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["findings"]


def record(limit, data, path):
    """(The records of the process, what the kernel counted before and after them, its counter, the findings)"""
    folder, counter = make_cgroup(limit)
    reader = subprocess.Popen([sys.executable, "-c", READER, data, folder], stdout=subprocess.PIPE)
    try:
        reader.stdout.readline()
        before = reached(counter)
        sonde = Sonde(path, "-p", str(reader.pid))
        time.sleep(4.5)
        sonde.end()
        counted = reached(counter) - before
    finally:
        reader.kill()
        reader.wait()
        os.rmdir(folder)
    return [e for e in Trace(path).events("sched_memory") if e["pid"] == reader.pid], counted, counter, findings(path)


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    data, path = os.path.join(workdir(), "data"), os.path.join(workdir(), "t.sonde")
    with open(data, "wb") as f:
        for _ in range(SIZE >> 20):
            f.write(os.urandom(1 << 20))
        os.fsync(f.fileno())
        # what is in the cache already belongs to this process's cgroup
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    events, counted, counter, found = record(LIMIT, data, path)
    name = "/" + os.path.basename(os.path.dirname(counter))
    ok(events and {(e["limit"], e["cgroup"][-len(name):]) for e in events} == {(LIMIT, name)}, "the limit and its cgroup", events)
    # the kernel counted before and after the recording, too; version 1 also counts attempts to get pages in advance,
    # and at the limit some 32 are freed at once
    least = counted // (2 if counter.endswith("events.local") else 200)
    bounds.between("the number of times, by the kernel's counter", sum(e["reached"] for e in events), max(least, 1), counted)
    texts = [f["text"] for f in found]
    ok(any("reached its memory limit of 32.00 MiB" in text and "the kernel frees pages, which are read again" in text for text in texts),
       "findings name the limit", texts)
    events = record(1 << 30, data, path)[0]
    ok(not events, "a limit that is not reached has no record", events)
    done()


main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""With --disk=all, later writeback by a kernel thread is recorded with its file, each page once."""
import os
import subprocess

from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

WRITE, META = 1, 2
RETURN_NOT_SEEN = 2  # bpf/core/event.h
BY_PROCESS, BY_WRITEBACK = 0, 1
PAGE_CACHE = 1
SIZE = 1 << 20


def has_requests(path):
    dev = os.stat(path).st_dev
    link = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
    return os.path.exists(link + "/mq") or os.path.exists(link + "/../mq")


def record(path, data):
    """(The recording, its trace, device and number of the file, its writes)"""
    subprocess.run(["sync", "-f", workdir()], check=True)
    sonde = Sonde(path, "-t", "disk", "--disk=all")
    with open(data, "wb") as f:
        f.write(b"x" * SIZE)
        f.flush()
        # the kernel's own threads write, and this one waits for them
        subprocess.run(["sync", "-f", data], check=True)
        st = os.fstat(f.fileno())
    status = sonde.end()
    dev = os.major(st.st_dev) << 20 | os.minor(st.st_dev)
    trace = Trace(path)
    ios = [e for e in trace.events("disk_io") if (e["dev"], e["ino"], e["op"]) == (dev, st.st_ino, WRITE) and not e["traits"] & META]
    return status, sonde, trace, (dev, st.st_ino), ios


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    if not has_requests(workdir()):
        skip_all(f"{workdir()} is not on a disk with requests")
    path, data = os.path.join(workdir(), "t.sonde"), os.path.join(workdir(), "data")
    for _ in range(5):
        status, sonde, trace, (dev, ino), ios = record(path, data)
        # the kernel runs no program for some completions (docs/disk.md)
        if not any(e["flags"] & RETURN_NOT_SEEN for e in ios):
            break
    ok(status == 0, "recorded", sonde.messages)
    ok(sum(e["bytes"] for e in ios) == SIZE and not any(e["flags"] for e in ios), "the whole file is written, each page once",
       [(e["bytes"], e["flags"]) for e in ios])
    ok(all(e["asker"] == BY_WRITEBACK and e["file_from"] == PAGE_CACHE for e in ios), "writeback has its file",
       [(e["asker"], e["file_from"], e["tid"]) for e in ios])
    with open(f"/proc/{ios[0]['pid']}/comm" if ios else "/dev/null") as f:
        ok(f.read().startswith("kworker"), "writeback is by a kernel thread")
    names = [e["path"] for e in trace.events("disk_file") if (e["dev"], e["ino"]) == (dev, ino)]
    ok(names and names[0].endswith("/data"), "the file has its name", names)
    done()


main()

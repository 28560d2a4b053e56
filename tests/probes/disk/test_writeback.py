#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""With --disk=all: what a thread of the kernel writes back later, with its file, each page once."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from recording import ROOT, workdir
from sonde_trace import Trace
from tap import done, ok, skip_all

WRITE, META = 1, 2
BY_PROCESS, BY_WRITEBACK = 0, 1
PAGE_CACHE = 1
SIZE = 1 << 20


def has_requests(path):
    dev = os.stat(path).st_dev
    link = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
    return os.path.exists(link + "/mq") or os.path.exists(link + "/../mq")


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    if not has_requests(workdir()):
        skip_all(f"{workdir()} does not lie on a disk with requests")
    path, data = os.path.join(workdir(), "t.sonde"), os.path.join(workdir(), "data")
    sonde = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
    tracer = subprocess.Popen([sonde, "record", "-t", "disk", "--disk=all", "-d", "4", "-f", "-o", path],
                              stderr=subprocess.PIPE, text=True)
    said = ""
    while "tracing into" not in said:
        said += tracer.stderr.readline() or "tracing into"
    with open(data, "wb") as f:
        f.write(b"x" * SIZE)
        f.flush()
        # the kernel's own threads write, and this one waits for them
        subprocess.run(["sync", "-f", data], check=True)
        st = os.fstat(f.fileno())
    said += tracer.communicate(timeout=60)[1]
    ok(tracer.returncode == 0, "recorded", said)
    dev = os.major(st.st_dev) << 20 | os.minor(st.st_dev)
    trace = Trace(path)
    ios = [e for e in trace.events("disk_io") if (e["dev"], e["ino"], e["op"]) == (dev, st.st_ino, WRITE) and
           not e["traits"] & META]
    ok(sum(e["bytes"] for e in ios) == SIZE and not any(e["flags"] for e in ios), "all of the file is written, each page once",
       [(e["bytes"], e["flags"]) for e in ios])
    ok(all(e["asker"] == BY_WRITEBACK and e["file_from"] == PAGE_CACHE for e in ios), "by the kernel's writeback, with its file",
       [(e["asker"], e["file_from"], e["tid"]) for e in ios])
    with open(f"/proc/{ios[0]['pid']}/comm" if ios else "/dev/null") as f:
        ok(f.read().startswith("kworker"), "in a thread of the kernel")
    names = [e["path"] for e in trace.events("disk_file") if (e["dev"], e["ino"]) == (dev, st.st_ino)]
    ok(names and names[0].endswith("/data"), "the file is named", names)
    done()


main()

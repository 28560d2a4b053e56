#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Family gpu with a hostile target, and the shim's semaphores in processes that fork."""
import os
import re
import signal
import subprocess
import time

from recording import Recording
from shim_lib import SHIM
from sonde_cli import Sonde
from tap import done, ok, skip_all
from waiting import wait_for

HOSTILE = os.path.join(os.environ.get("B", "build"), "tests", "probes", "gpu", "hostile")
READ, REFUSED = 9, 10  # bpf/core/meta.h
# forks on request; both processes wait
FORKER = """
import os, sys, time
open("/proc/self/comm", "w").write("sondeforks")
print("ready", flush=True)
sys.stdin.readline()
pid = os.fork()
if pid:
    print(pid, flush=True)
time.sleep(60)
"""


def lies():
    r = Recording([HOSTILE, SHIM], "gpu")
    good, bad = map(int, r.output[0].split())
    seen = r.of("gpu_memset")
    lost = sum(e["count"] for e in r.trace.events("meta_loss") if e["family"] == 13 and e["reason"] == READ)
    ok(r.status == 0 and len(seen) == good, f"{good} good records are recorded", len(seen), r.messages)
    # a batch that claims 0xffff records is rejected as one bad record
    ok(lost == bad, f"{bad} bad records are rejected and counted", lost)
    ok(all(e["pid"] == r.pid and e["start"] <= e["time"] for e in seen), "records have the right process and times", seen[:3])
    ok(sum(e["bytes"] == 4711 for e in seen) == good - 1 and sum(e["bytes"] == 0 for e in seen) == 1,
       "fields that a shorter body lacks are 0", [e["bytes"] for e in seen])
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    r = Recording([HOSTILE, SHIM, "noise"], "gpu")
    mine = [e for kind in r.trace.head["schema"]["events"] if kind["id"] >> 8 == 13 for e in r.trace.events(kind["name"])]
    ok(r.status == 0 and all(e["pid"] == r.pid for e in mine) and
       all(0 < e["time"] < began + 100_000_000_000 for e in mine), f"random records break nothing ({len(mine)} events)", r.messages)
    # wrong data of a target must not be reported as a fault of the trace's writer
    refused = sum(e["count"] for e in r.trace.events("meta_loss") if e["reason"] == REFUSED)
    ok(not refused, "random records: no record unknown to the schema reaches the writer", refused, r.messages)


def page_of(pid, name):
    """(contents of a process's page with a symbol of the shim, the file's contents)"""
    out = subprocess.run(["nm", "-D", SHIM], capture_output=True, text=True, check=True).stdout
    address = int(re.search(rf"^(\w+) . {name}$", out, re.M)[1], 16) & ~4095
    with open(f"/proc/{pid}/maps") as f:
        base = min(int(line.split("-")[0], 16) for line in f if "libsonde-cupti" in line)
    with open(f"/proc/{pid}/mem", "rb") as f:
        f.seek(base + address)
        memory = f.read(4096)
    # the text segment has equal offsets in the file and in memory
    with open(SHIM, "rb") as f:
        f.seek(address)
        return memory, f.read(4096)


def raised(pid):
    page = page_of(pid, "sonde_cupti_semaphore_kernels")[0]
    assert page.startswith(b"sonde-semaphores")
    return sum(b > 0 for b in page[16:])


def forks():
    p = subprocess.Popen(["/usr/bin/python3", "-c", FORKER], env=dict(os.environ, LD_PRELOAD=SHIM), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    out = os.path.join(os.environ.get("TMPDIR", "/tmp"), "fork.sonde")
    sonde = Sonde(out, "-t", "gpu", "--comm", "sondeforks")
    before = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    ok(wait_for(lambda: raised(p.pid) == 6), "the semaphores of a process with the shim are raised", raised(p.pid))
    p.stdin.write("\n")
    p.stdin.flush()
    child = int(p.stdout.readline())
    ok(wait_for(lambda: raised(child) == 6) and raised(p.pid) == 6, "those of its child are raised, by links of its own",
       raised(p.pid), raised(child))
    p.kill()
    p.wait()
    time.sleep(0.5)
    ok(raised(child) == 6, "the child's stay raised when the parent ends", raised(child))
    ok(sonde.end() == 0 and raised(child) == 0, "the semaphores are 0 when sonde has ended", sonde.messages, raised(child))
    for name in ("sonde_cupti_control_kernels", "sonde_cupti_records"):
        memory, file = page_of(child, name)
        ok(memory == file, f"{name}: no breakpoint is left in the child")
    after = subprocess.run(["dmesg"], capture_output=True, text=True).stdout[len(before):]
    ok("ref_ctr" not in after and "uprobe" not in after, "the kernel log has no complaint", after)
    os.kill(child, signal.SIGKILL)


if os.geteuid():
    skip_all("tracing needs root")
lies()
forks()
done()

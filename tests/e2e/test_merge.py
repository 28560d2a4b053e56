#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""
Several traces merged into one. Two sondes record at once, one of them in a time namespace and with another boot id, as if on another
machine. Aligned by CLOCK_REALTIME, its events must be at their true times, as both recordings have the same hardware clock.
"""
import os
import re
import subprocess

ROOT, SONDE, TMP = (os.environ[n] for n in ("ROOT", "SONDE", "TMPDIR"))
import bounds
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

HOST = 1 << 22


def path(name):
    return os.path.join(TMP, name)


def run(*args):
    return subprocess.run([SONDE, *args], capture_output=True, text=True, errors="replace")


def record_both(target):
    """Records a.sonde here, and b.sonde in namespaces with another clock and boot id, if the kernel allows it."""
    with open(path("boot_id"), "w") as f:
        f.write("11111111-2222-3333-4444-555555555555\n")
    args = ["record", "-t", "proc,sched", "-p", str(target.pid), "-d", "4", "-f", "-o"]
    elsewhere = ["unshare", "-m", "-T", "--monotonic", "100000", "--boottime", "200000", "--fork", "sh", "-c",
                 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', path("boot_id")]
    # the merged trace's times are relative to the earlier one's start
    a = Sonde(path("a.sonde"), *args[1:-2]).process
    b = subprocess.Popen([*elsewhere, SONDE, *args, path("b.sonde")], stderr=subprocess.PIPE, text=True)
    for p in (a, b):
        said = p.communicate(timeout=60)[1]
        if p.returncode:
            return said
    return None


def moments(trace, pid):
    """{tid: ends of its runs}"""
    found = {}
    for e in trace.events("sched_run"):
        if e["pid"] == pid:
            found.setdefault(e["tid"], []).append(e["time"])
    return {tid: sorted(times) for tid, times in found.items()}


def exported(text, origin):
    """{pid: ends of its runs} from an export whose lines have the seconds since origin and the thread"""
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*(-?)(\d+)\.(\d{9})\s.*?\b(\d+)/\d+\s+sched\s+sched_run\b", line)
        if m:
            ns = int(m[2]) * 10**9 + int(m[3])
            found.setdefault(int(m[4]), []).append(origin + (-ns if m[1] else ns))
    return {pid: sorted(times) for pid, times in found.items()}


def cpus(text, pid):
    """The CPU of each run of the process, in an export as text"""
    return [int(m[1]) for m in re.finditer(rf"\b{pid}/\d+\s+sched\s+sched_run\b.* cpu=(\d+)", text)]


def main():
    work = "import time\nwhile True: time.sleep(0.003)"
    target = subprocess.Popen(["/usr/bin/python3", "-c", work])
    try:
        why = record_both(target)
    finally:
        target.kill()
        target.wait()
    if why:
        skip("traces of two machines", f"no time or mount namespace here: {why.strip().splitlines()[-1]}")
        done()
    a, b = Trace(path("a.sonde")), Trace(path("b.sonde"))
    true_a, true_b = moments(a, target.pid), moments(b, target.pid)
    ok(true_a.get(target.pid) and true_b.get(target.pid), "both have recorded the same process",
       (len(true_a), len(true_b)))
    both = run("export", path("a.sonde"), path("b.sonde"), "--to", "text")
    if both.returncode:
        return ok(False, "two traces export as one", both.stderr)
    times = exported(both.stdout, a.head["clocks"]["monotonic"])
    ok(times.get(target.pid) == true_a.get(target.pid), "the first trace's events keep their times",
       f"{len(times.get(target.pid, []))} of {len(true_a[target.pid])}")
    moved = times.get(target.pid + HOST, [])
    error = max((abs(x - y) for x, y in zip(moved, true_b[target.pid])), default=None)
    ok(len(moved) == len(true_b[target.pid]), "each of the second trace's events is there", f"{len(moved)} of {len(true_b[target.pid])}")
    clocks = sum(max(e["error"] for e in trace.events("meta_clock")) for trace in (a, b))
    bounds.within("the second trace's events have their times", error, 0, clocks, "each trace's clocks were read within this time")
    expected = sorted(e["cpu"] + a.head["machine"]["cpus"] for e in b.events("sched_run") if e["pid"] == target.pid)
    found = sorted(cpus(both.stdout, target.pid + HOST))
    ok(found == expected != [], "the CPUs of the second machine have numbers above those of the first", len(found), len(expected))
    ok(str(HOST) in both.stderr, "a message says which pids belong to which trace", both.stderr)
    one = run("report", path("a.sonde"), path("a.sonde"), "sched")
    ok(one.returncode == 0 and "twice" in one.stdout + one.stderr, "two traces of one machine with overlapping times: a message", one.stdout[:500])
    names = run("report", path("a.sonde"), path("b.sonde"), "sched", "-p", str(target.pid + HOST))
    ok("python3" in names.stdout, "texts and names are in the merged export", names.stdout + names.stderr)
    other = run("report", path("a.sonde"), "/etc/hostname")
    ok(other.returncode == 2 or other.returncode == 1, "a file that is not a trace is refused", other.stderr)


main()
done()

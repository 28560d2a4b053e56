#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 waits
"""`sonde inject`, 50 times (ROUNDS; 1,000 in `make stress`), into programs that check their computations and system
calls: plain ones, many busy threads, signals and timers, a busy loader and allocator, containers."""
import os
import re
import shutil
import tempfile
import time

from inject_lib import (
    CONTAINERS,
    TARGET,
    State,
    Target,
    changed_text,
    differences,
    has_shim,
    inject,
    shim_thread,
)
from tap import done, ok, skip, skip_all
from waiting import wait_for

ROUNDS = int(os.environ.get("ROUNDS", 50))
KINDS = [  # (name, arguments, container, share of 50 rounds)
    ("asleep", [], None, 12),
    ("computing alone", ["-t", "1"], None, 4),
    ("in system calls, with signals and timers", ["-s"], None, 8),
    ("16 busy threads, system calls, signals", ["-t", "16", "-s"], None, 8),
    ("a busy loader and allocator, forks", ["-t", "2", "-l"], None, 4),
    ("unshare", ["-t", "4", "-s"], "unshare", 5),
    ("bwrap", ["-t", "4", "-s"], "bwrap", 5),
    ("crun", ["-t", "4", "-s"], "crun", 4),
]
borrowed, stood = [], []


def one(args, container, tmp, again):
    """The faults of one injection, or None if the container can't be created"""
    t = Target([TARGET, *args], container, tmp)
    if not t.ready:
        t.kill()
        return None if container else ["the target did not start", t.first]
    time.sleep(0.1)
    before, loader = State(t.pid), "-l" in args
    r = inject(t.pid)
    m = re.search(r"used for ([\d.]+) ms and stopped for ([\d.]+) ms", r.stdout)
    bad = []
    if r.returncode or not m or ("from memory" in r.stdout) != bool(container):
        bad.append(("sonde", r.returncode, r.stdout, r.stderr))
    else:
        borrowed.append(float(m[1]))
        stood.append(float(m[2]))
        if stood[-1] > 50:
            print(f"# {container or ''} {args}: {r.stdout.strip()}")
    if not wait_for(lambda: shim_thread(t.pid)):
        bad.append("its thread does not run")
    # the loader opens and closes files, so that descriptors change
    if not loader:
        bad += differences(before, State(t.pid), container)
    bad += [("code was changed", p) for p in changed_text(t.pid)]
    if again:
        r = inject(t.pid)
        if r.returncode or "has the library already" not in r.stdout:
            bad.append(("a second time", r.returncode, r.stdout, r.stderr))
    time.sleep(0.15)
    if not has_shim(t.pid):
        bad.append("the library is not there")
    status = t.end()
    count = re.search(r"checks (\d+) wrong (\d+)", t.output)
    if status or not count or count[2] != "0" or int(count[1]) < (2 if not args else 20):
        bad.append(("the target", status, t.output, t.errors))
    return bad


def main():
    if os.geteuid():
        skip_all("the containers need root")
    total = 0
    for name, args, container, share in KINDS:
        n, bad = max(1, share * ROUNDS // 50), []
        if container and container != "unshare" and not shutil.which(container):
            skip(name, f"{container} is not installed")
            continue
        for i in range(n):
            with tempfile.TemporaryDirectory(prefix="sonde-inject-") as tmp:
                os.chmod(tmp, 0o755)
                found = one(args, container, tmp, i == 0)
            if found is None:
                break
            bad += found
            total += 1
        if found is None:
            skip(name, "no such container can be made here")
            continue
        ok(not bad, f"{name}: {n} times, the state is unchanged", *bad[:5])
    assert set(CONTAINERS) >= {k[2] for k in KINDS if k[2]}
    for what, times in (("borrowed", borrowed), ("stood still", stood)):
        times.sort()
        print(f"# {what} for {times[len(times) // 2]:.1f} ms, 90% up to {times[len(times) * 9 // 10]:.1f}, the longest "
              f"{times[-1]:.1f}")
    ok(total >= ROUNDS * 3 // 5, f"{total} injections")
    done()


main()

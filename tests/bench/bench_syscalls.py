#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_syscalls: ns per system call with sonde and its peers.

The peers alternate for ROUNDS (5) rounds; a round's figure is its fastest batch (interruptions only add time), the table
has the medians of the rounds. "another" traces a process that makes no calls, which shows the cost for other processes.
Nothing here passes or fails.
"""
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
SPIN = os.path.join(ROOT, "build", "tests", "workloads", "syscall_spin")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CALLS = ("getppid", "read", "futex")
OTHER = subprocess.Popen(["sleep", "1000"])


def sonde(*words):
    return lambda pid, tmp: [SONDE, "record", "-f", "-o", os.path.join(tmp, "trace"), "-p",
                             str(OTHER.pid if "another" in words else pid), *(w for w in words if w != "another")]


PEERS = {
    "nothing": None,
    "syscall": sonde("-t", "syscall"),
    "threshold": sonde("-t", "syscall", "--osrt-threshold", "1000000"),
    "lock": sonde("-t", "lock"),
    "another": sonde("-t", "syscall", "another"),
    "another lock": sonde("-t", "lock", "another"),
    "perf trace": lambda pid, tmp: ["perf", "trace", "-o", os.path.join(tmp, "perf"), "-p", str(pid)],
    "perf trace -s": lambda pid, tmp: ["perf", "trace", "-s", "-o", os.path.join(tmp, "perf"), "-p", str(pid)],
    "strace": lambda pid, tmp: ["strace", "-o", os.path.join(tmp, "strace"), "-p", str(pid)],
}


def start(command):
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if command[0] == SONDE:
        while "tracing into" not in p.stderr.readline():
            pass
    # an existing process is found in the first scan
    time.sleep(0.5)
    return p


def main():
    peers = {n: c for n, c in PEERS.items() if c is None or shutil.which(c(1, "")[0])}
    found = {c: {n: [] for n in peers} for c in CALLS}
    tmp = tempfile.mkdtemp(prefix="sonde-bench-")
    spin = subprocess.Popen([SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    spin.stdout.readline()
    for _ in range(ROUNDS):
        for name, command in peers.items():
            p = start(command(spin.pid, tmp)) if command else None
            for call in CALLS:
                n, batches = (200, 5) if name == "strace" else (2000, 20)
                spin.stdin.write(f"{call} {n} {batches}\n")
                spin.stdin.flush()
                found[call][name].append(min(map(float, spin.stdout.readline().split())))
            if p:
                p.send_signal(signal.SIGINT)
                text = p.communicate()[1]
                if command(1, "")[0] == SONDE and " 0 lost" not in text:
                    print("# sonde: " + text.strip().replace("\n", "\n# "))
    spin.stdin.close()
    spin.wait()
    OTHER.kill()
    shutil.rmtree(tmp)
    print(f"\nns a call, median of {ROUNDS} rounds (lowest to highest)")
    print(f"{'':16}" + "".join(f"{c:>26}" for c in CALLS))
    for name in peers:
        print(f"{name:16}" + "".join(f"{statistics.median(found[c][name]):8.0f} ({min(found[c][name]):.0f} to "
                                     f"{max(found[c][name]):.0f})".rjust(26) for c in CALLS))


main()

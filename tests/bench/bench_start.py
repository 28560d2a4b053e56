#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The time from the start of sonde until it traces: medians of ROUNDS runs in ms, by step (SONDE_TEST=timing), and of bpftrace.

  default     the default set of `sonde record`; goal on two idle cores: 200
  everything  every family; goal: 400
  top         until its first figures, with --interval 0.1; goal: 500
  bpftrace    until its BEGIN prints: one tracepoint, and some twenty of them

The load average is printed, since a busy machine makes every figure larger.
"""
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build/test/sonde"))
TMP = os.environ.get("TMPDIR", "/tmp")
ROUNDS = int(os.environ.get("ROUNDS", 5))
ALL = "+sched,syscall,disk,net,lock,python,sample,gpu"
TRACEPOINTS = ("sched_switch", "sched_waking", "sched_wakeup_new", "sched_process_fork", "sched_process_exec", "sched_process_exit")


def one(argv, word, stream, end):
    """(ms until a line of the stream has the word, {step: ms})"""
    start = time.monotonic()
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, text=True, env={**os.environ, "SONDE_TEST": "timing"},
                         stdout=subprocess.PIPE if stream == "stdout" else subprocess.DEVNULL,
                         stderr=subprocess.PIPE if stream == "stderr" else subprocess.DEVNULL)
    steps = {}
    pipe = p.stdout if stream == "stdout" else p.stderr
    live = None
    for line in pipe:
        found = re.match(r"timing: (.+?) +([\d.]+) ms$", line)
        if found and not found[1].startswith("program "):
            steps[found[1]] = steps.get(found[1], 0) + float(found[2])
        if live is None and word in line:
            live = (time.monotonic() - start) * 1000
            p.send_signal(end)
    p.wait()
    return live, steps


def measure(argv, word, stream, end=signal.SIGTERM):
    runs = [one(argv, word, stream, end) for _ in range(ROUNDS)]
    runs = [r for r in runs if r[0] is not None]
    if not runs:
        return None, {}
    names = list(dict.fromkeys(n for _, steps in runs for n in steps))
    return (statistics.median(live for live, _ in runs),
            {n: statistics.median(steps.get(n, 0) for _, steps in runs) for n in names})


def record(*args):
    return [SONDE, "record", "-f", "-o", os.path.join(TMP, "start.sonde"), *args]


def main():
    columns = {
        "default": measure(record(), "tracing into", "stderr"),
        "everything": measure(record("-t", ALL), "tracing into", "stderr"),
        "top": measure([SONDE, "top", "--plain", "--interval", "0.1"], "end ", "stdout"),
    }
    names = list(dict.fromkeys(n for _, steps in columns.values() for n in steps))
    print(f"ms, medians of {ROUNDS}; load average {os.getloadavg()[0]:.1f}")
    print(f"{'step':28}" + "".join(f"{c:>12}" for c in columns))
    for name in names:
        print(f"{name:28}" + "".join(f"{steps[name]:12.1f}" if name in steps else f"{'':12}" for _, steps in columns.values()))
    print(f"{'live':28}" + "".join(f"{live:12.1f}" if live else f"{'failed':>12}" for live, _ in columns.values()))
    if not shutil.which("bpftrace"):
        print("bpftrace: not installed here, skipped")
        return
    begin = 'BEGIN { printf("live\\n"); } '
    scripts = {"bpftrace, 1 tracepoint": "tracepoint:sched:sched_switch { @[args->next_pid] = count(); }",
               "bpftrace, 20 tracepoints": "".join(f"tracepoint:sched:{t} {{ @[pid] = count(); }} " for t in TRACEPOINTS) +
               "tracepoint:syscalls:sys_enter_*at { @[pid] = count(); }"}
    for name, script in scripts.items():
        # bpftrace needs tracefs, which may not be mounted
        command = "mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; exec bpftrace -B line -e \"$0\""
        # BEGIN prints before bpftrace handles SIGTERM, which would be lost
        live, _ = measure(["unshare", "-m", "sh", "-c", command, begin + script], "live", "stdout", signal.SIGKILL)
        print(f"{name:28}" + (f"{live:12.1f}" if live else f"{'failed':>12}"))


main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a push and pop of NVTX costs: without a tool, with the shim but without a recording, and recorded.

The variants take turns. The table has the median of ROUNDS (5) runs of the program's own median and 99th percentile, and the
ratio to the run without a tool. With bursts of 1,000 pairs the thread itself hands over its records, with 100 the shim's.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
B = os.environ.get("B", os.path.join(ROOT, "build"))
ROUNDS = int(os.environ.get("ROUNDS", 5))
PROGRAM = os.path.join(B, "tests", "probes", "nvtx", "nvtx_cost-13")
SHIM = os.path.join(B, "libsonde-cupti.so")


def run(command, **env):
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    time.sleep(1.5)
    return [float(x) for x in p.communicate("go\n", timeout=60)[0].split()]


def lost(trace):
    text = subprocess.run([os.path.join(B, "sonde"), "info", trace], capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if "lost" in line]


def main():
    if not os.path.exists(PROGRAM):
        print("NVTX's headers could not be downloaded: scripts/nvtx.sh prints why")
        sys.exit(77)
    trace = os.path.join(tempfile.mkdtemp(), "t.sonde")
    record = [os.path.join(B, "sonde"), "record", "-q", "-t", "nvtx", "-f", "-o", trace, "--"]
    variants = {}
    for pairs in ("100", "1000"):
        program = [PROGRAM, pairs, "500", "2000"]
        variants["no tool", pairs] = (program, {})
        variants["shim, no recording", pairs] = (program, {"NVTX_INJECTION64_PATH": SHIM})
        variants["recorded", pairs] = (record + program, {})
    found = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, (command, env) in variants.items():
            found[name].append(run(command, **env))
    print(f"{'push and pop':24} {'pairs':>6} {'median ns':>10} {'p99 ns':>9} {'ratio':>7}")
    for (name, pairs), runs in found.items():
        median, p99 = (statistics.median(r[i] for r in runs) for i in (0, 1))
        base = statistics.median(r[0] for r in found["no tool", pairs])
        print(f"{name:24} {pairs:>6} {median:10.1f} {p99:9.1f} {median / base:7.0f}")
    print("\n".join(lost(trace)))


main()

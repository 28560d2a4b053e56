#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_python [WORK..]: the cost of sonde and its peers for Python programs. Environment: PAIRS (30), SECONDS (0.6) of a run.

In each of PAIRS rounds a work runs alone and with each tool, in varying order. The table has the median ratios to the work alone in
the same round, with a 95% bootstrap interval, of the wall time and the CPU time per unit of work (1.01: 1% more). For sonde it also
has the cost of its programs and traps as a share of the wall time: hits x calibrated cost + BPF run time (of the whole machine, so
that wake-ups and ticks of other processes are included). If the interval is wider than the goal, use that share; the line says so.

A run begins as soon as sonde traces, so that it includes reading symbols; the peers get half a second before.

Peers: py-spy and austin in PATH, build/peers/bin or build/py-spy/bin, bpftrace in PATH (it times take_gil and drop_gil; the
interpreter must have these symbols: BENCH_PYTHON). PyTorch is looked for in build/venv. Nothing here passes or fails.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pairs

PAIRS = int(os.environ.get("PAIRS", "30"))
SECONDS = float(os.environ.get("SECONDS", "0.6"))
VENV = os.path.join(pairs.B, "venv/bin/python")
PYTHON = os.environ.get("BENCH_PYTHON") or (VENV if os.path.exists(VENV) else sys.executable)

WORK = r'''
import os, sys, threading, time, cProfile

kind = sys.argv[1]
fd = os.open("/dev/zero", os.O_RDONLY)

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def spin():
    for _ in range(2000):
        pass

def convoy():
    os.read(fd, 1)
    for _ in range(200):
        pass

class Node:
    def __init__(self, parent):
        self.parent, self.children = parent, []
        if parent:
            parent.children.append(self)

def parse():
    """A tree of 1,000 nodes with cycles, so that only the collector can free it"""
    root = Node(None)
    for _ in range(1000):
        Node(root)

def train():
    step.zero_grad()
    torch.nn.functional.cross_entropy(net(pictures), labels).backward()
    step.step()

if kind == "torch":
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
    pictures, labels = torch.rand(16, 3, 32, 32), torch.arange(16) % 10
    net(pictures)
    step = torch.optim.SGD(net.parameters(), lr=0.01)
unit, threads = {"loop": (spin, 1), "contended": (spin, 3), "convoy": (convoy, 3), "calls": (lambda: fib(12), 1),
                 "objects": (parse, 1), "torch": (train, 1)}[kind]

def worker(i, done, end):
    while time.monotonic() < end:
        unit()
        done[i] += 1

def run(seconds):
    """(units, wall ns, CPU ns)"""
    done, start, cpu = [0] * threads, time.monotonic(), time.process_time_ns()
    others = [threading.Thread(target=worker, args=(i, done, start + seconds)) for i in range(1, threads)]
    for t in others:
        t.start()
    worker(0, done, start + seconds)
    for t in others:
        t.join()
    return sum(done), (time.monotonic() - start) * 1e9, time.process_time_ns() - cpu

run(0.3)
print("ready", flush=True)
for line in sys.stdin:
    warm, seconds, profile = line.split()
    if float(warm):
        run(float(warm))
    profiler = cProfile.Profile() if profile == "cProfile" else None
    if profiler:
        profiler.enable()
    result = run(float(seconds))
    if profiler:
        profiler.disable()
    print(*result, flush=True)
'''
# seconds before a work is measured, as sonde first has to detect a convoy
WARM = {"convoy": 0.4}
SONDE = {"contended": ["-t", "gil"], "convoy": ["-t", "gil"], "calls": ["-F", "99"], "torch": ["-F", "99"]}
GOAL = {"contended": 0.5, "convoy": 5, "calls": 1, "torch": 0.3}


def tool(name):
    found = [shutil.which(name), os.path.join(pairs.B, "peers/bin", name), os.path.join(pairs.B, "py-spy/bin", name)]
    for path in found:
        # an installed one may be built for a newer libc and not run
        if path and os.access(path, os.X_OK) and not subprocess.run([path, "--version"], capture_output=True).returncode:
            return path
    return None


def runtime_of(pid):
    """The file with take_gil: libpython, or the program"""
    with open(f"/proc/{pid}/maps") as f:
        files = [line.split()[-1] for line in f if "libpython3" in line]
    return files[0] if files else os.readlink(f"/proc/{pid}/exe")


def peers(kind, pid, tmp):
    """{name: command, or None for the program alone}"""
    out, found = os.path.join(tmp, "peer.out"), {}
    if tool("py-spy"):
        found["py-spy 99 Hz"] = [tool("py-spy"), "record", "-r", "99", "-d", "1000", "-f", "raw", "-o", out, "-p", str(pid)]
    if tool("austin"):
        found["austin 10 ms"] = [tool("austin"), "-i", "10000", "-o", out, "-p", str(pid)]
    if kind in ("contended", "convoy") and tool("bpftrace"):
        lib = runtime_of(pid)
        script = (f"uprobe:{lib}:take_gil {{ @s[tid] = nsecs; }} "
                  f"uretprobe:{lib}:take_gil /@s[tid]/ {{ @wait[tid] = sum(nsecs - @s[tid]); delete(@s[tid]); @h[tid] = nsecs; }} "
                  f"uprobe:{lib}:drop_gil /@h[tid]/ {{ @hold[tid] = sum(nsecs - @h[tid]); delete(@h[tid]); }}")
        found["bpftrace take/drop"] = [tool("bpftrace"), "-o", out, "-p", str(pid), "-e", script]
    if kind in ("calls", "torch"):
        found["cProfile"] = None
    return found


class Work:
    def __init__(self, kind):
        self.kind = kind
        self.p = subprocess.Popen([PYTHON, "-c", WORK, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        if self.p.stdout.readline() != "ready\n":
            raise RuntimeError(f"{PYTHON} can't run it")

    def run(self, profile="-"):
        """(wall ns, CPU ns) per unit of work"""
        self.p.stdin.write(f"{WARM.get(self.kind, 0)} {SECONDS} {profile}\n")
        self.p.stdin.flush()
        units, wall, cpu = map(float, self.p.stdout.readline().split())
        return wall / units, cpu / units

    def under(self, command, name):
        if command is None:
            return self.run(name)
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # bpftrace compiles first
        time.sleep(1.5 if "bpftrace" in name else 0.5)
        alive = p.poll() is None
        found = self.run()
        pairs.end(p)
        return found if alive else None

    def under_sonde(self, out):
        """The same as run(), and sonde's share of the wall time by its own counters"""
        # enabled each time, as another program may have disabled it
        subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=1"], check=False)
        p = pairs.attach(self.p.pid, SONDE[self.kind], out)
        before, start = pairs.bpf_run_ns(p.pid), time.monotonic_ns()
        found = self.run()
        programs = (pairs.bpf_run_ns(p.pid) - before) / (time.monotonic_ns() - start)
        pairs.end(p)
        hits, traps = pairs.costs(out)
        return found, hits, traps, programs

    def end(self):
        self.p.kill()
        self.p.wait()


def line(name, ratios, rest="", middle=statistics.median):
    said = ""
    for side in (0, 1):
        values = [r[side] for r in ratios]
        low, high = pairs.interval(values, middle)
        said += f"  {middle(values):7.3f} [{low:.3f}, {high:.3f}]"
    print(f"  {name:20}{said}  {rest}", flush=True)


def verdict(ratios, own, goal):
    low, high = pairs.interval([r[0] for r in ratios])
    share = 100 * statistics.median(traps + programs for _, traps, programs in own)
    hits = statistics.median(h for h, _, _ in own)
    said = f"{hits:.0f} hits; traps {100 * statistics.median(o[1] for o in own):.3f}% + BPF {100 * statistics.median(o[2] for o in own):.3f}% of wall"
    if 100 * (high - low) > goal:
        return f"{said}\n{'':22}interval wider than the goal of {goal}%: judged by that share, {share:.3f}%: {'met' if share <= goal else 'missed'}"
    return f"{said}\n{'':22}goal {goal}%: {'met' if low <= 1 + goal / 100 else 'missed'} by the interval"


def bench(kind):
    try:
        work = Work(kind)
    except RuntimeError as e:
        print(f"{kind}: left out: {e}")
        return
    with tempfile.TemporaryDirectory() as tmp:
        tools = peers(kind, work.p.pid, tmp)
        names = ["nothing", "sonde", *tools]
        found, own = {n: [] for n in names[1:]}, []
        for _ in range(PAIRS):
            random.shuffle(names)
            now = {}
            for name in names:
                if name == "nothing":
                    now[name] = work.run()
                elif name == "sonde":
                    now[name], *mine = work.under_sonde(os.path.join(tmp, "bench.sonde"))
                    own.append(mine)
                else:
                    now[name] = work.under(tools[name], name)
            for name in found:
                if now[name]:
                    found[name].append([a / b for a, b in zip(now[name], now["nothing"])])
    work.end()
    print(f"{kind}: {PAIRS} rounds of {SECONDS} s")
    print("  beside it             wall time of a unit           CPU time of a unit")
    line("sonde " + " ".join(SONDE[kind]), found["sonde"], verdict(found["sonde"], own, GOAL[kind]))
    for name in tools:
        if found[name]:
            line(name, found[name])
        else:
            print(f"  {name:20}  did not run")


def main():
    if os.geteuid():
        print("tracing needs root")
        sys.exit(77)
    print(f"{PYTHON}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; peers: "
          f"{', '.join(n for n in ('py-spy', 'austin', 'bpftrace') if tool(n)) or 'none'}")
    try:
        for kind in sys.argv[1:] or SONDE:
            bench(kind)
    finally:
        subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=0"], check=False)


if __name__ == "__main__":
    main()

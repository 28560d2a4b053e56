#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_torch_durations [OPTION..]: durations of operators as `sonde record -t torch [OPTION..]` has them after correction, compared with those of
a C++ program's own clock without probes, or, with --inject, without sonde's library. Environment: RUNS (40), ROUNDS (25) of a run. Without options:
none, --torch=all, and the library with and without the operators that operators call.

Two processes of the program (torch_durations.cc) run in turns, on one CPU and with a real-time priority, so that other programs do not interrupt
them. The second one uses copies of libtorch and libc10 that sonde does not recognize, because a byte of their names (DT_SONAME) is another one.
The processes differ even without a recording, for instance by where their memory lies: the second one's times are multiplied by the ratio of both
before the recording. Printed are means without the longest tenth, and medians. The correction is that of user/model/torch_tree.c, computed
anew; the last line compares sonde's own sum. Nothing here passes or fails.
"""
import collections
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), p) for p in ("../lib", "../probes/torch")]
import pairs
from recorded import Recorded
from sonde_trace import Trace

RUNS, ROUNDS = int(os.environ.get("RUNS", "40")), int(os.environ.get("ROUNDS", "25"))
SOURCE = os.path.join(pairs.ROOT, "tests/bench/torch_durations.cc")
COLD_TRAP, COLD_MAX_NS = 5, 1000
LIBRARY = ["--inject", "--torch-budget", "none"]
OTHERS = {"libtorch_cpu.so": "libtorch_cpx.so", "libc10.so": "libc1x.so"}


def rename(path, out):
    """Copies a file with other names of the two libraries in it."""
    with open(path, "rb") as f:
        data = f.read()
    for name, other in OTHERS.items():
        data = data.replace(name.encode() + b"\0", other.encode() + b"\0")
    with open(out, "wb") as f:
        f.write(data)
    os.chmod(out, 0o755)


def build(folder, torch):
    """(program, program whose libtorch is not recognized)"""
    program, other, libraries = os.path.join(folder, "program"), os.path.join(folder, "other"), os.path.join(torch, "lib")
    subprocess.run(["g++", "-std=c++20", "-O1", SOURCE, "-o", program, "-I", os.path.join(torch, "include"), "-L", libraries, "-l:libtorch_cpu.so",
                    "-l:libc10.so", f"-Wl,-rpath,{folder}:{libraries}"], check=True)
    rename(program, other)
    for name, renamed in OTHERS.items():
        rename(os.path.join(libraries, name), os.path.join(folder, renamed))
    return program, other


def undisturbed():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class Program:
    def __init__(self, path):
        self.p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, preexec_fn=undisturbed)
        self.p.stdout.readline()

    def run(self, times):
        self.p.stdin.write(f"{ROUNDS}\n")
        self.p.stdin.flush()
        run = json.loads(self.p.stdout.readline())
        for name, values in run["times"].items():
            times[name] += values
        return run

    def end(self):
        self.p.kill()
        self.p.wait()


def in_turns(programs, n):
    """([times by name of each program], runs of the first one)"""
    times, runs = [collections.defaultdict(list) for _ in programs], []
    for _ in range(n):
        for program, of in zip(programs, times):
            run = program.run(of)
            if program is programs[0]:
                runs.append(run)
    return times, runs


def durations(recorded, run, names, cost):
    """[(name, duration, corrected duration)] of the outermost calls of a run, in ns"""
    around, outer = [], []
    for e, _ in sorted(recorded.within(run["start"], run["end"]), key=lambda c: (c[0]["start"], -c[0]["time"])):
        cold = COLD_TRAP * min(max(e["entry_ns"] - cost["entry"], 0), COLD_MAX_NS)
        while around and around[-1]["time"] <= e["start"]:
            around.pop()
        for call in around:
            call["cost"] += e["hits"] * (cost["own"] + cold) + 2 * (cost["own"] + cold)
        e["cost"] = cost["own"] + e["probes_ns"] + e["hits"] * (cost["own"] + cold)
        if not e["probes_ns"]:  # by the library
            for call in around:
                call["cost"] += cost["call"] - 2 * cost["own"] + e["hits"] * (cost["hit"] - cost["own"])
            e["cost"] += e["hits"] * (cost["hit"] - cost["own"])
        if not around:
            outer.append(e)
        around.append(e)
    found = [(e["time"] - e["start"], e["time"] - e["start"] - e["cost"]) for e in outer]
    return [(names[i % len(names)], *d) for i, d in enumerate(found)] if len(found) % len(names) == 0 else []


def mean(values):
    return statistics.mean(sorted(values)[:len(values) * 9 // 10])


def compare(programs, options, out):
    (before, other_before), _ = in_turns(programs, RUNS // 2)
    p = pairs.attach(programs[0].p.pid, ["-t", "torch", *options], out)
    (_, other), runs = in_turns(programs, RUNS)
    pairs.end(p)
    trace = Trace(out)
    if not list(trace.events("torch_cost")):
        raise SystemExit(f"the trace has no event torch_cost: {out}")
    cost, recorded, found = next(iter(trace.events("torch_cost"))), Recorded(trace, programs[0].p.pid), collections.defaultdict(list)
    for run in runs:
        for name, *d in durations(recorded, run, list(run["times"]), cost):
            found[name].append(d)
    print(f"{' '.join(['-t torch', *options])}, load {os.getloadavg()[0]:.1f}, {RUNS * ROUNDS} calls each, in us: unprobed, recorded, corrected")
    for how in (mean, statistics.median):
        good = 0
        for name, values in found.items():
            truth = how(other[name]) * how(before[name]) / how(other_before[name])
            raw, corrected = (how([v[i] for v in values]) for i in range(2))
            is_good = abs(corrected - truth) <= 0.05 * truth + 1000
            good += is_good
            print(f"{how.__name__:7} {name:36} {truth / 1000:9.2f} {raw / 1000:9.2f} {corrected / 1000:9.2f} {100 * (corrected / truth - 1):+6.1f}%"
                  f"{'' if is_good else '  not within 5% + 1 us'}")
        print(f"{how.__name__:7} {good} of {len(found)} within 5% + 1 us")
    report = json.loads(subprocess.run([pairs.SONDE, "report", out, "torch", "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    computed = sum(v[1] for values in found.values() for v in values)
    print(f"sum of the corrected durations: {computed / 1e6:.2f} ms, by sonde {sum(r['self_ns'] for r in report['tables']['operators']) / 1e6:.2f} ms")


def main():
    torch = glob.glob(os.path.join(pairs.B, "venv/lib/python3*/site-packages/torch"))
    if os.geteuid() or not torch:
        print("this needs root, and PyTorch in build/venv")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        paths = build(folder, torch[0])
        for options in [sys.argv[1:]] if sys.argv[1:] else ([], ["--torch=all"], LIBRARY, [*LIBRARY, "--torch=inner"]):
            programs = [Program(path) for path in paths]
            compare(programs, options, os.path.join(folder, "out.sonde"))
            for program in programs:
                program.end()


if __name__ == "__main__":
    main()

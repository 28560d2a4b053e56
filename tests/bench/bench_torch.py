#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_torch: what recording PyTorch costs real programs and loops, by each way of sonde and by torch.profiler.

bench_torch.py [--programs LIST] [--modes LIST] [--pairs N] [--seconds S] [--json FILE] [--markdown FILE]

Each program is one process (DDP: two ranks), which works in turns with a recorder and without one, the modes in varying order. A run with a recorder is
paired with the mean of the runs just before and after it, each of the same number of steps. The table has medians of the ratios of the CPU time of a
step, by the processes' own clocks (CLOCK_PROCESS_CPUTIME_ID), with a 95% bootstrap interval (1.10: 10% more); the bytes that a step has in the trace; and
the events lost in all recordings. Attaching, detaching, and the start and stop of torch.profiler are no part of the ratios. The bytes of torch.profiler
are those of its JSON. Last come the longest steps of the 2 ms loop while sonde attaches with `--torch=all` and detaches.

As root. Nothing here passes or fails. PAIRS (15) is the default of --pairs; three pairs of everything take 10 to 15 minutes. Packages are
installed into build/real/venv, unless BENCH_PYTHON names an interpreter; a program whose packages are missing is left out."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lib"), os.path.join(HERE, "../real")]
import pairs  # noqa: E402
import torch_packages  # noqa: E402
from marks import write_between_marks  # noqa: E402
from sonde_trace import Trace  # noqa: E402

RANKS = 2
# The package that each program needs
PROGRAMS = {"gpt2": "transformers", "resnet18": "torchvision", "lightning": "lightning", "ddp": "torch", "compile": "torch",
            **{f"loop-{ms}ms": "torch" for ms in (2, 5, 20, 50)}}
SONDE = {"inject": ["--inject"], "none": ["--inject", "--torch-budget", "none"], "probes": [], "all": ["--torch=all"],
         "shapes": ["--torch=shapes"], "stacks": ["--torch=stacks"]}
TITLES = {"inject": "`-t torch --inject`", "none": "`--torch-budget none`", "probes": "`-t torch`", "all": "`--torch=all`",
          "shapes": "`--torch=shapes`", "stacks": "`--torch=stacks`", "profiler": "torch.profiler", "profiler-full": "its shapes, stacks"}
TORCH = 0x0e  # the number of the family
STACK_LOSSES = ("LOSS_READ", "LOSS_TORN", "LOSS_NESTED", "LOSS_RATE")  # of these a call has no stack
# Idle threads of OpenMP spin otherwise, for a time that depends on what else runs on the machine.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}
# Factors of widths and batches (torch_programs.py), with which a step takes 1 to 20 ms
SCALES = {"gpt2": 8}
SCALE = 16
PROFILED_MAX = 100000  # events in a run with torch.profiler, which takes ten times the time of the run to stop


class Program:
    def __init__(self, name, python, folder):
        self.name, self.folder = name, folder
        env = {**os.environ, **ENVIRONMENT, "TORCH_PROGRAMS_SCALE": str(SCALES.get(name, SCALE))}
        ranks = [[str(i), os.path.join(folder, "store")] for i in range(RANKS)] if name == "ddp" else [[]]
        self.processes = [subprocess.Popen([python, os.path.join(HERE, "torch_loops.py"), name, *rank], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, env=env) for rank in ranks]
        self.runs = all(line == "ready\n" for line in [p.stdout.readline() for p in self.processes])
        self.n = 1

    def send(self, *command):
        for p in self.processes:
            p.stdin.write(" ".join(map(str, command)) + "\n")
            p.stdin.flush()

    def read(self):
        return [json.loads(p.stdout.readline()) for p in self.processes]

    def do(self, *command):
        self.send(*command)
        return self.read()

    def sums(self, *command):
        """The answers of the ranks: their sums, but for the number of steps and the wall time"""
        found = self.do(*command)
        return {key: found[0][key] if key in ("steps", "all_steps", "wall") else sum(rank[key] for rank in found) for key in found[0]}

    def run(self):
        return self.sums("alone", self.n)

    def set_length(self, seconds):
        """Chooses n for runs of this duration."""
        self.n = max(1, round(10 * seconds * 1e9 / min(self.do("alone", 10)[0]["wall"] for _ in range(2))))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.wait()


class Cost:
    """What the runs of a program in one mode showed, a value for each pair"""
    def __init__(self):
        self.cpu, self.wall, self.events, self.bytes, self.lost, self.stacks_lost = [], [], [], [], [], []

    def add(self, before, run, after):
        for values, key in ((self.cpu, "cpu"), (self.wall, "wall")):
            alone = [r[key] / r["steps"] for r in (before, after)]
            values.append(run[key] / run["steps"] / statistics.mean(alone))
        for values, key in ((self.events, "events"), (self.bytes, "bytes"), (self.lost, "lost"), (self.stacks_lost, "stacks_lost")):
            values.append(run[key])

    def as_json(self):
        return {"cpu_ratio": statistics.median(self.cpu), "cpu_interval": pairs.interval(self.cpu), "cpu_ratios": self.cpu, "wall_ratios": self.wall,
                "lost_events": sum(self.lost), "lost_stacks": sum(self.stacks_lost), "bytes_per_step": statistics.median(self.bytes),
                "events_per_step": statistics.median(self.events)}


def in_trace(path, steps):
    """Records of PyTorch's calls and their bytes in the file with those of stacks, of a step; and how many records and stacks are missing"""
    info = json.loads(subprocess.run([pairs.SONDE, "info", path, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    kinds = info["tables"]["events"]
    trace = Trace(path)
    losses = [e for e in trace.events("meta_loss") if e["family"] == TORCH]
    return {"events": sum(e["events"] for e in kinds if e["family"] == "torch") / steps,
            "bytes": sum(e["file_bytes"] for e in kinds if e["family"] == "torch" or e["name"] in ("meta_code", "meta_frame")) / steps,
            "lost": sum(e["count"] for e in losses if e["reason_name"] not in STACK_LOSSES) + sum(e["records"] for e in trace.events("torch_dropped")),
            "stacks_lost": sum(e["count"] for e in losses if e["reason_name"] in STACK_LOSSES)}


class Recorder:
    """sonde, which records one run"""
    def __init__(self, program, mode):
        self.program, self.options, self.title = program, SONDE[mode], TITLES[mode]

    def run(self):
        out = os.path.join(self.program.folder, "out.sonde")
        p = pairs.attach(",".join(str(p.pid) for p in self.program.processes), ["-t", "torch", *self.options], out)
        is_observed = "--inject" in self.options
        try:
            # a library that is in the process already looks for a recording once a second
            if is_observed and not all(self.program.do("observed", 1)):
                sys.exit(f"bench_torch.py: {self.program.name}: sonde's library does not record: {self.title}")
            run = self.program.run()
        finally:
            pairs.end(p)
        if is_observed:
            self.program.do("observed", 0)
        return {**run, **in_trace(out, run["all_steps"])}


class Profiler:
    """torch.profiler, whose events and bytes are those of one file"""
    def __init__(self, program, mode):
        self.program, self.mode = program, mode
        size = program.sums("size", mode)
        self.found = {"events": size["events"] / size["steps"], "bytes": size["bytes"] / size["steps"], "lost": 0, "stacks_lost": 0}
        self.n = min(program.n, max(1, PROFILED_MAX // size["events"]))

    def run(self):
        return {**self.program.sums(self.mode, self.n), **self.found}


def measure(program, args):
    """The CPU times of a step alone (ns), and the Cost of each mode"""
    program.set_length(args.seconds)
    recorders = {mode: (Recorder if mode in SONDE else Profiler)(program, mode) for mode in args.modes}
    costs = {mode: Cost() for mode in args.modes}
    before = program.run()
    alone = [before["cpu"] / before["steps"]]
    for _ in range(args.pairs):
        for mode in random.sample(args.modes, len(args.modes)):
            run = recorders[mode].run()
            after = program.run()
            costs[mode].add(before, run, after)
            alone.append(after["cpu"] / after["steps"])
            before = after
    return alone, costs


def longest(times, start, end):
    return max((b - a for a, b in zip(times, times[1:]) if b > start and a < end), default=0) / 1e6


def attach_and_detach(program):
    """The longest steps in ms: before, while attaching, while recording, while detaching"""
    program.send("until")
    time.sleep(2)
    start = time.monotonic_ns()
    p = pairs.attach(program.processes[0].pid, ["-t", "torch", "--torch=all"], os.path.join(program.folder, "out.sonde"))
    attached = time.monotonic_ns()
    time.sleep(2)
    stop = time.monotonic_ns()
    pairs.end(p)
    end = time.monotonic_ns()
    program.send("observed", 0)
    times, _ = program.read()[0], program.read()
    return longest(times, 0, start), longest(times, start, attached), longest(times, attached, stop), longest(times, stop, end)


def table(results, modes):
    """Ratios, bytes and losses, a row for each program and a column for each mode"""
    rows = [("", "program", "CPU time of a step alone", *(TITLES[mode] for mode in modes)), ["---"] * (3 + len(modes))]
    groups = {"CPU time": lambda c: "{:.3f} ({:.3f} to {:.3f})".format(c["cpu_ratio"], *c["cpu_interval"]),
              "bytes a step": lambda c: f"{c['bytes_per_step']:,.0f}", "events a step": lambda c: f"{c['events_per_step']:,.0f}",
              "events lost": lambda c: f"{c['lost_events']:,}" + (f" and {c['lost_stacks']:,} stacks" if c["lost_stacks"] else "")}
    for title, cell in groups.items():
        for name, found in results.items():
            rows.append((title, name, f"{found['step_cpu_ns'] / 1e6:.2f} ms", *(cell(found["modes"][mode]) for mode in modes)))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def print_delays(delays):
    print("longest step in 2 s before: {:.1f} ms, while sonde attaches: {:.1f} ms, in 2 s of recording: {:.1f} ms, "
          "while it detaches: {:.1f} ms".format(*delays))


def chosen(text, known):
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no '{name}'; there are: {', '.join(known)}")
    return names


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=lambda text: chosen(text, PROGRAMS), default=list(PROGRAMS), help=",".join(PROGRAMS))
    parser.add_argument("--modes", type=lambda text: chosen(text, TITLES), default=list(TITLES), help=",".join(TITLES))
    parser.add_argument("--pairs", type=int, default=int(os.environ.get("PAIRS", "15")))
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run without torch.profiler")
    parser.add_argument("--json", default=os.path.join(pairs.B, "bench_torch.json"), help="%(default)s")
    parser.add_argument("--markdown", metavar="FILE", help="writes the table between the marks that FILE has for it, as docs/torch.md")
    return parser.parse_args()


def run_program(name, python, args):
    with tempfile.TemporaryDirectory() as folder, Program(name, python, folder) as program:
        if not program.runs:
            print(f"{name}: left out, as it does not run", flush=True)
            return None
        began = time.monotonic()
        alone, costs = measure(program, args)
        print(f"{name}: {args.pairs} pairs of {len(args.modes)} modes in {time.monotonic() - began:.0f} s", flush=True)
        delays = [attach_and_detach(program) for _ in range(3)] if name == "loop-2ms" and "all" in args.modes else []
    return {"step_cpu_ns": statistics.median(alone), "modes": {mode: cost.as_json() for mode, cost in costs.items()}, "longest_steps_ms": delays}


def main():
    args = arguments()
    if os.geteuid():
        print("tracing needs root")
        sys.exit(77)
    python = os.environ.get("BENCH_PYTHON") or torch_packages.install()
    machine = f"PyTorch {torch_packages.version(python, 'torch')}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, medians of {args.pairs} pairs"
    print(machine, flush=True)
    results = {}
    for name in args.programs:
        if not torch_packages.version(python, PROGRAMS[name]):
            print(f"{name}: left out, as {PROGRAMS[name]} can't be installed", flush=True)
        elif found := run_program(name, python, args):
            results[name] = found
    if not results:
        sys.exit(77)
    text = table(results, args.modes)
    print(text)
    for delays in (delays for found in results.values() for delays in found["longest_steps_ms"]):
        print_delays(delays)
    print(f"load {os.getloadavg()[0]:.1f}")
    with open(args.json, "w", encoding="utf-8") as f:
        json.dump({"machine": machine, "pairs": args.pairs, "seconds": args.seconds, "programs": results}, f, indent=1)
    if args.markdown:
        commit = subprocess.run(["git", "-C", pairs.ROOT, "rev-parse", "--short=8", "HEAD"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        write_between_marks(args.markdown, "bench_torch", f"Commit {commit}, {machine}:\n\n{text}")


if __name__ == "__main__":
    main()

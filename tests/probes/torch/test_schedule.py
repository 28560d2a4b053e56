#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--schedule: exactly the active steps are recorded, by the program's own count and clock, and each with the operators that torch.profiler counts.
test: timeout=300 parallel"""
import collections
import json
import os
import subprocess

from recording import workdir
from sonde_cli import SONDE
from sonde_trace import Trace
from tap import done, ok, skip_all
from torch_env import python
from waiting import wait_for

WAIT, WARMUP, ACTIVE, REPEAT = 2, 150, 4, 2
SCHEDULE = f"wait={WAIT},warmup={WARMUP},active={ACTIVE},repeat={REPEAT}"

# Steps differ in their number of sines, so that a step that is recorded in place of another one shows.
PROGRAM = """
import json, os, sys, time
import torch
from torch.profiler import ProfilerActivity, profile, record_function
torch.set_num_threads(1)
stop, out = sys.argv[1:]
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(8, 32)
ends = []
with profile(activities=[ProfilerActivity.CPU]) as p:
    for step in range(4000):
        with record_function(f"step {step}"):
            optimizer.zero_grad()
            for _ in range(step % 11):
                x.sin()
            model(x).sum().backward()
            optimizer.step()
        ends.append(time.monotonic_ns())
        time.sleep(0.004)
        if os.path.exists(stop):
            break
events = [(e.name(), e.start_ns(), e.end_ns()) for e in p.profiler.kineto_results.events()]
marks = sorted((start, end, int(name.split()[1])) for name, start, end in events if name.startswith("step "))
steps = [{} for _ in marks]
events.sort(key=lambda e: e[1])
at = 0
for name, start, end in events:
    while at + 1 < len(marks) and start >= marks[at + 1][0]:
        at += 1
    if name.startswith("aten::") and marks[at][0] <= start < marks[at][1]:
        steps[marks[at][2]][name] = steps[marks[at][2]].get(name, 0) + 1
json.dump({"ends": ends, "steps": steps}, open(out, "w"))
"""


def record(folder):
    stop, out, path = (os.path.join(folder, n) for n in ("stop", "out.json", "all.sonde"))
    command = [SONDE, "record", "-o", path, "-t", "torch", "--torch=all", "--schedule", SCHEDULE, "--", python(), "-c", PROGRAM, stop, out]
    sonde = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    messages = []
    for line in sonde.stderr:
        messages.append(line)
        if "continues untraced" in line:
            with open(stop, "w", encoding="ascii"):
                pass
    with open(out, encoding="ascii") as f:
        return Trace(path), json.load(f), sonde.wait(), "".join(messages), path


def check_steps(trace, truth):
    """The steps of each cycle, and when they ended"""
    phases = [e for e in trace.events("torch_phase") if e["phase_name"] == "STEP_ACTIVE"]
    late = [p["postponed"] for p in phases]
    expected = [n * (WAIT + WARMUP + ACTIVE) + WAIT + WARMUP + late[n] + i for n in range(REPEAT) for i in range(ACTIVE)]
    steps = sorted(trace.events("torch_step"), key=lambda e: e["time"])
    ok(len(phases) == REPEAT and [s["step"] for s in steps] == expected and [s["cycle"] for s in steps] == [1] * ACTIVE + [2] * ACTIVE,
       "the active steps of each cycle are recorded, and no other", [s["step"] for s in steps], expected)
    ends = truth["ends"]
    ok(all(ends[s["step"] - 1] < s["time"] <= ends[s["step"]] for s in steps), "by the program's own count, each ended when the program says",
       [(s["step"], s["time"], ends[s["step"]]) for s in steps])
    return steps


def check_operators(trace, truth, steps):
    counts = {s["step"]: collections.Counter() for s in steps}
    outside = []
    names = {p["number"]: p["name_text"] for p in trace.events("meta_probe")}
    boxed = {o["handle"]: o["name"] for o in trace.events("torch_operator")}
    for call in trace.events("torch_op"):
        name = boxed.get(call["handle"]) or names[call["probe"]].split(".")[0]
        of = [s for s in steps if s["start"] <= call["start"] < s["time"]]
        if not of:
            outside.append((name, call["start"]))
        elif name.startswith("aten::"):
            counts[of[0]["step"]][name] += 1
    ok(not outside, "no operator outside of them is", outside[:5])
    wrong = {n: (dict(c), truth["steps"][n]) for n, c in counts.items() if dict(c) != truth["steps"][n]}
    ok(all(counts.values()) and not wrong, "their operators are those that torch.profiler counts, name by name", wrong)
    ok(len({c["aten::sin"] for c in counts.values()}) > 3, "the steps differ", {n: c["aten::sin"] for n, c in counts.items()})


def check_report(trace, path, steps):
    active = sum(s["time"] - s["start"] for s in steps)
    report = json.loads(subprocess.run([SONDE, "report", path, "steps", "--format", "json"], capture_output=True, text=True, check=True).stdout)
    ok(abs(report["trace"]["traced_ns"] - active) < 1000, "the traced time is that of the steps", report["trace"]["traced_ns"], active)
    ok(sorted(r["step"] for r in report["tables"]["steps"]) == [s["step"] for s in steps], "the report has the same steps",
       [r["step"] for r in report["tables"]["steps"]])
    text = subprocess.run([SONDE, "report", path], capture_output=True, text=True, check=True).stdout
    ok("the recording was paused for the rest" in text, "the summary says that the rest was paused", text[-400:])
    chrome = json.loads(subprocess.run([SONDE, "export", path, "--to", "chrome"], capture_output=True, text=True, check=True).stdout)
    names = [e["name"] for e in chrome["traceEvents"] if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    ok(sorted(names) == sorted(f"ProfilerStep#{s['step']}" for s in steps), "Kineto's names are exported", names)


def check_cycles(folder, whole, trace, truth, steps):
    """Each cycle is a trace of its own, which only its owner can read, with all that describes the program."""
    for cycle in range(1, REPEAT + 1):
        path = os.path.join(folder, f"cycle-{cycle}.sonde")
        subprocess.run([SONDE, "export", whole, "--to", "cycle", "--event", str(cycle), "-o", path], check=True)
        verify = subprocess.run([SONDE, "info", "--verify", path], capture_output=True, text=True, check=False)
        ok(verify.returncode == 0 and os.stat(path).st_mode & 0o777 == 0o600, f"cycle {cycle}: a whole trace", verify.stdout, verify.stderr)
        own = [s for s in steps if s["cycle"] == cycle]
        part = Trace(path)
        found = sorted(s["step"] for s in part.events("torch_step"))
        ok(found == [s["step"] for s in own], f"cycle {cycle}: its steps", found)
        calls = [c for c in trace.events("torch_op") if own[0]["start"] <= c["start"] < own[-1]["time"]]
        kept = sum(1 for _ in part.events("torch_op"))
        ok(kept == len(calls) > 0, f"cycle {cycle}: its calls", kept, len(calls))
        report = json.loads(subprocess.run([SONDE, "report", path, "torch", "--format", "json"], capture_output=True, text=True, check=True).stdout)
        sines = {r["name"]: r["calls"] for r in report["tables"]["operators"]}["aten::sin"]
        ok(sines == sum(truth["steps"][s["step"]].get("aten::sin", 0) for s in own), f"cycle {cycle}: names, as often as torch.profiler counts", sines)
        active = own[-1]["time"] - own[0]["start"]
        ok(abs(report["trace"]["traced_ns"] - active) < 1000, f"cycle {cycle}: its traced time", report["trace"]["traced_ns"], active)
    none = os.path.join(folder, "none")
    wrong = subprocess.run([SONDE, "export", whole, "--to", "cycle", "--event", str(REPEAT + 1), "-o", none], capture_output=True, text=True, check=False)
    ok(wrong.returncode == 2 and f"cycle {REPEAT + 1} was not recorded: the trace has {REPEAT}" in wrong.stderr and not os.path.exists(none),
       "a cycle that the trace lacks is refused", wrong.stderr)


LOOP = """
import os, sys, time
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(int(sys.argv[3])):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    time.sleep(0.01)
    if os.path.exists(sys.argv[1]):
        break
    if not os.path.exists(sys.argv[2]):
        open(sys.argv[2], "w").close()
"""


def check_cut_off(folder):
    """A trace that is cut off in the warmup, which is not recorded, has the pause up to then."""
    path = os.path.join(folder, "cut.sonde")
    stop, steps = (os.path.join(folder, n) for n in ("stop.loop", "steps"))
    sonde = subprocess.Popen([SONDE, "record", "-q", "-o", path, "-t", "torch", "--schedule", "wait=1,warmup=100000,active=1", "--",
                              python(), "-c", LOOP, stop, steps, "1000000"], stderr=subprocess.DEVNULL)
    began = wait_for(lambda: os.path.exists(steps) or sonde.poll() is not None, 100, 0.1) and sonde.poll() is None
    paused = began and wait_for(lambda: sum(e["time"] - e["start"] for e in Trace(path).events("meta_pause")) > 1_000_000_000, 60, 0.3)
    sonde.kill()
    sonde.wait()
    with open(stop, "w", encoding="ascii"):
        pass
    ok(paused, "a recording that is killed in the warmup has its pause")
    pauses = sum(e["time"] - e["start"] for e in Trace(path).events("meta_pause"))
    info = json.loads(subprocess.run([SONDE, "report", path, "--format", "json"], capture_output=True, text=True, check=True).stdout)["trace"]
    ok(0 < info["traced_ns"] <= info["to_ns"] - info["start_ns"] - pauses + 1000, "and its traced time is without it", info, pauses)


def check_stopped(folder):
    """A recording of a program that ends after its first cycle has that, and has not failed."""
    stop, steps, path = (os.path.join(folder, n) for n in ("never", "steps", "part.sonde"))
    command = [SONDE, "record", "-o", path, "-t", "torch", "--schedule", "warmup=200,active=2,repeat=3", "--",
               python(), "-c", LOOP, stop, steps, "390"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    recorded = sorted({e["cycle"] for e in Trace(path).events("torch_step")})
    ok(run.returncode == 0 and recorded == [1], "the program ends after the first cycle: the others are missing, which is no error",
       run.returncode, recorded, run.stderr)


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    trace, truth, status, messages, path = record(workdir())
    ok(status == 0 and [e["reason_name"] for e in trace.events("meta_end")] == ["END_SCHEDULE"], "the recording ends with its last cycle", messages)
    steps = check_steps(trace, truth)
    check_operators(trace, truth, steps)
    check_report(trace, path, steps)
    check_cycles(workdir(), path, trace, truth, steps)
    check_cut_off(workdir())
    check_stopped(workdir())
    done()


main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `overhead`: a loop with nothing, with the dormant shim, with the shim on, with torch.profiler, in turns.

All of them are there at once and wait to be asked; a round asks each for the same steps, in an order that changes. So
what the machine does meanwhile meets all alike, and a round's ratio to "nothing" is what counts.
"""
import statistics

import pytorch
from facts import with_cuda
from lib import Asked, Skip
from pairs import interval
from shimmed import environment

from build import SHIM, WORK, need_shim

ROUNDS, ROUND_S = 7, 0.5


def ratios(times, base):
    """Of the rounds: median and the interval that holds it with 95%."""
    found = [a / b for a, b in zip(times, base)]
    low, high = interval(found)
    return {"median": round(statistics.median(found), 4), "from": round(low, 4), "to": round(high, 4), "rounds": len(found)}


def in_turns(run, workers, question, rounds):
    """Seconds of each round by configuration, and with start and stop; as many rounds as there is time for."""
    times, whole = {name: [] for name in workers}, {name: [] for name in workers}
    names = list(workers)
    for r in range(rounds):
        if run.left() < 4 and r:
            break
        for name in names[r % len(names):] + names[:r % len(names)]:
            times[name].append(workers[name].number(question, 30))
            whole[name].append(workers[name].whole)
    shortest = min(len(t) for t in times.values())
    return {name: t[:shortest] for name, t in times.items()}, {name: t[:shortest] for name, t in whole.items()}


def steps_for(worker, kernels, seconds):
    """How many steps take about so long."""
    steps = 20
    for _ in range(12):
        took = worker.number(f"go {steps} {kernels}", 30)
        if took > seconds / 4:
            break
        steps *= 2
    return max(5, int(steps * seconds / max(took, 1e-6)))


def measure(run, label, workers, kernels, rounds, seconds):
    for w in workers.values():
        if w.line(90) is None:
            raise Skip(f"{label}: a program does not come up: {open(w.path, errors='replace').read()[-800:]}")
    for w in workers.values():
        w.number(f"go 20 {kernels}", 60)
    steps = steps_for(workers["nothing"], kernels, seconds)
    times, whole = in_turns(run, workers, f"go {steps} {kernels}", rounds)
    table = {name: dict(ratios(t, times["nothing"]), seconds=[round(s, 5) for s in t]) for name, t in times.items()}
    if "torch.profiler" in table:  # the shim is started once and stopped once, and this in each round
        table["torch.profiler"]["with start and stop"] = ratios(whole["torch.profiler"], times["nothing"])
    if kernels:
        for name, t in times.items():
            extra = [(a - b) / steps / kernels * 1e9 for a, b in zip(t, times["nothing"])]
            table[name]["ns_more_a_launch"] = round(statistics.median(extra), 1)
    run.say(f"{label}: {steps} steps a round", table)
    n = min(len(t) for t in times.values())
    run.ok(n >= 5, f"{label}: measured in turns", f"{n} rounds", rounds=n,
           **{name.replace(" ", "_").replace(".", "_"): table[name]["median"] for name in table})
    # is it slower for good once the shim was on? cuptiFinalize is not called
    workers["shim on"].number("off", 40)
    times, _ = in_turns(run, {k: workers[k] for k in ("nothing", "shim on")}, f"go {steps} {kernels}", rounds)
    run.say(f"{label}: after the shim was switched off", ratios(times["shim on"], times["nothing"]))


def programs(run):
    out = run.file("shim")
    open(out, "w").close()
    return {
        "nothing": Asked([WORK, "loop"], with_cuda(run), run.file("log")),
        "dormant shim": Asked([WORK, "loop"], with_cuda(run, CUDA_INJECTION64_PATH=SHIM), run.file("log")),
        "shim on": Asked([WORK, "loop"], environment(run, out), run.file("log")),
    }


def torches(run):
    out = run.file("shim")
    open(out, "w").close()
    return {
        "nothing": pytorch.asked(run, ["loop"]),
        "dormant shim": pytorch.asked(run, ["loop"], dormant=True),
        "shim on": pytorch.asked(run, ["loop"], out),
        "torch.profiler": pytorch.asked(run, ["loop", "--profile"]),
    }


def one(run, label, make, kernels, rounds, seconds):
    workers = make(run)
    try:
        measure(run, label, workers, kernels, rounds, seconds)
    except Skip as why:
        run.skip(label, why)
    finally:
        for w in workers.values():
            w.end()


def run(run):
    need_shim()
    if not run.doubles and not run.result["machine"]["driver_cuda"]:
        raise Skip("there is no libcuda.so.1")
    rounds, seconds = (5, 0.05) if run.doubles else (ROUNDS, ROUND_S)
    if pytorch.usable(run):
        one(run, "a training loop", torches, 0, rounds, 2 * seconds)
    else:
        run.skip("a training loop", pytorch.why_not(run))
    one(run, "many short kernels", programs, 100, rounds, seconds)

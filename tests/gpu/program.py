# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `program`: a program of the driver's API that counts itself, against what the shim reported of it."""
import glob
import os
import shutil

from facts import with_cuda
from judge import Joined, check_durations, check_graphs, check_memory, check_waits
from lib import Skip
from shim_records import ALL, NODES, STARTED, STOPPED
from shimmed import Shimmed

from build import WORK, need_shim


def check_states(run, label, s):
    reported = s.reported
    run.ok(s.done.status == 0, f"{label}: the program ends well", *s.why(), seconds=round(s.done.seconds, 2))
    run.ok(reported.states[:1] == [STARTED] and reported.states[-1:] == [STOPPED] and reported.whole is True,
           f"{label}: the shim starts and stops, no batch is missing", *s.why())
    run.ok(not reported.dropped, f"{label}: nothing dropped", reported.dropped)
    for text in reported.texts:
        run.say(f"{label}: the shim says", text)


def ptxas():
    found = [shutil.which("ptxas"), *sorted(glob.glob("/usr/local/cuda*/bin/ptxas"), reverse=True),
             *glob.glob("/opt/*/.venv/lib/python3*/site-packages/triton/backends/nvidia/bin/ptxas")]
    return next((p for p in found if p and os.access(p, os.X_OK)), None)


def compile_kernels(run):
    """For a driver that has no compiler of PTX: by a toolkit's ptxas, or Triton's. Whether there is machine code now."""
    tool, m = ptxas(), run.result["machine"]
    capability = (m["gpus"] or [{}])[0].get("compute_cap", "").replace(".", "")
    if not tool or not capability:
        return False
    text, code = run.file("kernels.ptx"), run.file("kernels.cubin")
    with open(text, "w") as f:
        f.write(run.command([WORK, "ptx"], 10).out)
    done = run.command([tool, f"-arch=sm_{capability}", text, "-o", code], 20)
    run.say("the driver compiles no PTX", f"{tool}: {done.why()}")
    if done.status == 0:
        m["cubin"] = code
    return done.status == 0


def whole(run):
    """All of it, from the first call on: what a user sees. False: the program does not run with the shim."""
    s = Shimmed(run, ["run"], 40)
    if s.done.status == 3 and "PTX" in s.done.err and compile_kernels(run):
        s = Shimmed(run, ["run"], 40)
    check_states(run, "from the first on", s)
    if s.done.status:
        return None
    m = run.result["machine"]
    m["gpu"], m["clock_khz"] = s.facts.get("gpu"), s.facts.get("clock_khz")
    if s.facts["missing"]:
        run.say("not in this libcuda", s.facts["missing"])
    if s.facts.get("jit"):
        run.say("the compiler of PTX says", s.facts["jit"])
    if run.doubles:
        run.skip("from the first on: the kernels compute what they should", "the doubles have no memory")
    else:
        run.ok(s.facts.get("wrong_sums") == 0, "from the first on: the kernels compute what they should", s.facts)
    j = Joined(s.ops, s.reported)
    j.check(run, "from the first on")
    check_durations(run, "from the first on", j, run.doubles)
    check_graphs(run, "from the first on", j, False)
    check_waits(run, "from the first on", j)
    check_memory(run, "from the first on", s.ops, s.reported)
    clocks = s.reported.got["clock"]
    run.say("clock", {"samples": len(clocks), "error_ns": max((c["error"] for c in clocks), default=None),
                      "drift_ppb": [c["drift_ppb"] for c in clocks[1:6]], "restarted": sum(c["restarted"] for c in clocks)})
    run.say("CUPTI's version", s.reported.got["shim"][0]["version"] if s.reported.got["shim"] else None)
    run.ok(s.reported.got["device"] and s.reported.got["context"] and s.reported.got["stream"], "from the first on: device, context and streams are reported",
           {k: len(s.reported.got[k]) for k in ("device", "context", "stream")})
    return s


def by_node(run):
    s = Shimmed(run, ["run"], 30, groups=ALL | NODES)
    check_states(run, "graphs by node", s)
    j = Joined(s.ops, s.reported)
    j.check(run, "graphs by node")
    check_graphs(run, "graphs by node", j, True)


def dormant(run):
    s = Shimmed(run, ["run"], 30, later=True)
    run.ok(s.done.status == 0 and not s.reported.states and not s.reported.got["kernel"], "dormant: the shim says nothing, and the program ends well",
           *s.why())


def many(run):
    n = 20000 if run.doubles else 300000
    s = Shimmed(run, ["many", str(n)], 40)
    check_states(run, f"{n} kernels", s)
    reported = len(s.reported.got["kernel"])
    ns = s.facts.get("launched_in_ns", 0)
    run.ok(reported == n and len({k["correlation"] for k in s.reported.got["kernel"]}) == n, f"{n} kernels: each exactly once", reported,
           reported=reported, launches_a_second=round(n * 1e9 / ns) if ns else None)


def run(run):
    need_shim()
    if run.doubles is False and not run.result["machine"]["driver_cuda"]:
        raise Skip("there is no libcuda.so.1")
    s = whole(run)
    if s is None:
        run.say("without the shim", run_plain(run))
        # loaded by CUDA it calls CUPTI during cuInit: is it that?
        s = Shimmed(run, ["late"], 25, later=True, injected=False)
        run.say("with the shim, but not loaded by CUDA", [s.done.why(), s.reported.states, s.reported.texts, len(s.reported.got["kernel"])])
    for one, seconds in ((by_node, 12), (dormant, 8), (many, 12)):
        run.need(seconds, one.__name__.replace("_", " "))
        one(run)


def run_plain(run):
    """Is it the shim, or does the program not run here at all?"""
    done = run.command([WORK, "run"], 20, env=with_cuda(run))
    return "the program runs well" if done.status == 0 else "it does not run either: " + done.why()

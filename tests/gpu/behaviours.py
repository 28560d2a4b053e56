# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `behaviours`: what only a real GPU can show: coming late, resets, forks, ends without a wait, other profilers.

Each has a limit of its own. That the program lives and the shim's account is whole are checks; the rest is put in words.
"""

import os

import pytorch
from facts import with_cuda
from judge import Joined, check_graphs
from lib import Asked, Skip, read_text
from shim_records import REFUSED, STARTED, STOPPED
from shimmed import Shimmed, read_reported, read_truth

from build import SONDE, WORK, need_shim

NAMES = {STARTED: "started", STOPPED: "stopped", REFUSED: "refused", 4: "waits for CUDA", 5: "one of several left"}


def states(reported):
    return [NAMES.get(s, s) for s in reported.states]


def windows(s):
    """(name, begin, end) of each phase."""
    phases = s.facts["phases"]
    ends = [p["begin"] for p in phases[1:]] + [1 << 62]
    return [(p["number"], p["name"], p["begin"], end) for p, end in zip(phases, ends)]


def lives(run, label, s, argv):
    """Whether the program ended well; if not, whether it does without the shim."""
    why = s.why() if s.done.status else ()
    if s.done.status:
        plain = run.command([WORK, *argv], 25, env=with_cuda(run))
        why += ("without the shim " + ("it ends well" if plain.status == 0 else "it fails, too: " + plain.why()),)
    return run.ok(s.done.status == 0, f"{label}: the program lives", *why)


def late(run, label, injected):
    s = Shimmed(run, ["late"], 50, later=True, injected=injected)
    if not lives(run, label, s, ["late"]):
        return
    run.ok(s.reported.states == [STARTED, STOPPED] * 2, f"{label}: the shim starts and stops, twice", *s.why())
    for number, name, begin, end in windows(s):
        ops = [o for o in s.ops if o["phase"] == number]
        if name.startswith("on"):
            j = Joined(ops, s.reported, begin, end)
            j.check(run, f"{label}, {name}")
            check_graphs(run, f"{label}, {name}", j, True)
    inside = sum(sum(begin <= k["start"] < end for k in s.reported.got["kernel"]) for _, name, begin, end in windows(s) if name.startswith("on"))
    run.say(f"{label}: kernels reported of the time when it was off", len(s.reported.got["kernel"]) - inside)
    took = [(key, round(ns / 1e9, 3)) for key, ns in s.facts["each"] if key.startswith("switched")]
    run.say(f"{label}: seconds until the shim had said so", took)
    first = [k for k in s.reported.got["kernel"] if k["name"] not in s.reported.names]
    run.ok(not first, f"{label}: each kernel has a name", first[:3])


def coming_late(run):
    late(run, "late, loaded by CUDA", True)
    late(run, "late, loaded before CUDA", False)


def again(run):
    s = Shimmed(run, ["again"], 50)
    if not lives(run, "again", s, ["again"]):
        return
    for number, name, begin, end in windows(s):
        if name.startswith("on"):
            j = Joined([o for o in s.ops if o["phase"] == number], s.reported, begin, end)
            j.check(run, f"again, {name}")
            check_graphs(run, f"again, {name}", j, name != "on")


def reset(run):
    s = Shimmed(run, ["reset"], 30)
    lives(run, "device reset", s, ["reset"])
    j = Joined(s.ops, s.reported)
    run.say("device reset", {"launched": sum(o["op"] == "kernel" for o in s.ops), "reported": len(s.reported.got["kernel"]),
                             "joined": len(j.work), "contexts": len(s.reported.got["context"]), "dropped": s.reported.dropped,
                             "states": states(s.reported), "results": [e for e in s.facts["each"] if "eset" in e[0]]})
    after = [o for o in s.phase("after a reset") if o["op"] == "kernel"]
    reported = sum(1 for o, _, _ in j.work if o["op"] == "kernel" and o in after)
    run.say("device reset: kernels after it are reported", f"{reported} of {len(after)}")


def fork(run):
    s = Shimmed(run, ["fork"], 45)
    lives(run, "fork", s, ["fork"])
    Joined(s.ops, s.reported).check(run, "fork")
    child_facts, _ = read_truth(s.truth_path + ".child")
    child = read_reported(s.out + ".child")
    launched = child_facts.get("launched", 0)
    run.ok(launched and len(child.got["kernel"]) == launched, "fork: a child with a program of its own is reported by itself",
           launched, len(child.got["kernel"]), states(child), s.facts, reported=len(child.got["kernel"]))
    run.say("fork: a child that uses the parent's CUDA", {"wait status": s.facts.get("child_status")})


def leaving(run):
    for what in ("exit", "_exit"):
        plain = run.command([WORK, what], 30, env=with_cuda(run))
        s = Shimmed(run, [what], 30)
        launched = sum(o["op"] == "kernel" for o in s.ops)
        ended = [k for k in s.reported.got["kernel"] if k["time"]]
        run.ok(s.done.status == plain.status, f"{what} without a wait: the program ends as it does without the shim", plain.why(), *s.why(),
               seconds=round(s.done.seconds, 2), seconds_without=round(plain.seconds, 2))
        run.say(f"{what} without a wait", {"launched": launched, "reported": len(s.reported.got["kernel"]), "of these ended": len(ended),
                                          "calls": len(s.reported.got["call"]), "states": states(s.reported), "dropped": s.reported.dropped})


def contexts(run):
    s = Shimmed(run, ["contexts"], 30)
    if s.done.status == 5:
        run.skip("several contexts", "this libcuda has no cuCtxCreate_v2")
        return
    lives(run, "several contexts", s, ["contexts"])
    Joined(s.ops, s.reported).check(run, "several contexts")
    run.say("several contexts", {"reported": sorted({(k["device"], k["context"]) for k in s.reported.got["kernel"]})})


def mps(run):
    if not run.result["machine"].get("mps"):
        run.skip("MPS", "no MPS daemon runs here, and none is started")
        return
    apis = {c["api"] for c in Shimmed(run, ["run"], 30).reported.got["context"]}
    run.say("MPS", f"runs; the contexts' kinds of API: {sorted(apis)} (1 CUDA, 2 MPS)")


def other_profiler(run):
    if not pytorch.usable(run):
        run.skip("another profiler first, and later", pytorch.why_not(run))
        return
    out = run.file("profilers")
    shim_out = run.file("shim")
    open(shim_out, "w").close()
    done = pytorch.work(run, ["profilers", out], 75, shim_out, later=True)
    reported, lines = read_reported(shim_out), pytorch.read_lines(out)
    run.ok(done.status == 0, "another profiler: the program lives", done.why(), lines)
    run.say("another profiler", {"what was done": lines, "the shim": [
        {"at_ns": e["time"], "state": NAMES.get(e["state"]), "text": e["text"]} for e in reported.got["shim"]]})
    by_name = {e["what"]: e for e in lines if "what" in e}
    first = by_name.get("torch.profiler first", {})
    during = [k for k in reported.got["kernel"] if first.get("begin", 0) <= k["start"] < first.get("end", 0)]
    run.ok(first.get("kernels", 0) > 0 and not during, "another profiler first: it gets its kernels, and the shim steps aside",
           first, len(during))
    run.say("another profiler first: the shim comes back", any(
        e["state"] == STARTED and e["time"] > first.get("end", 1 << 62) for e in reported.got["shim"]))


def threads_of(pid):
    return [read_text(f"/proc/{pid}/task/{tid}/comm").strip() for tid in os.listdir(f"/proc/{pid}/task")]


def injected(run):
    """Into a process that uses CUDA: by ptrace alone, so also where there is no eBPF; part `ebpf` traces one afterwards."""
    if "inject" not in run.command([SONDE, "--help"], 10).out:
        run.skip("sonde inject into a running process", "there is no sonde here that runs and has such a command")
        return
    w = Asked([WORK, "loop"], with_cuda(run), run.file("log"))
    try:
        if w.line(30) is None:
            run.ok(False, "sonde inject: the program comes up", read_text(w.path))
            return
        before = w.number("go 200 20", 30)
        done = run.command([SONDE, "inject", str(w.child.pid)], 25)
        words = (done.err + done.out).strip()[-500:]
        if done.status and ("ptrace" in words or "permitted" in words or "privilege" in words):
            run.skip("sonde inject into a running process", words)
            return
        after = w.number("go 200 20", 30)
        names = threads_of(w.child.pid)
        run.ok(done.status == 0 and "sonde-cupti" in names, "sonde inject: the shim is in, and the program lives", done.why(), names,
               seconds=round(done.seconds, 2), before_s=before, after_s=after)
        run.say("sonde inject says", words)
    finally:
        w.end()


def run(run):
    need_shim()
    if not run.doubles and not run.result["machine"]["driver_cuda"]:
        raise Skip("there is no libcuda.so.1")
    # the other profilers last: they take longest
    for one in (coming_late, again, injected, leaving, fork, reset, contexts, mps, other_profiler):
        if run.left() < 8:
            run.skip(one.__name__, "no time was left")
            continue
        one(run)

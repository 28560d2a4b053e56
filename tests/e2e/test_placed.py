#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls that end in every possible way (tests/e2e/placed), with placed probes (docs/placement.md) and with return probes: the
target's results are right, and each call is in the trace once with its arguments and the way it ended. sonde is built with a
family from outside the tree, which probes these calls."""
# test: timeout=600 parallel
import collections
import os
import shutil
import signal
import subprocess
import sys

ROOT = os.environ.get("ROOT", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip, skip_all

HERE = os.path.join(ROOT, "tests", "e2e", "placed")
OPEN, RETURN_NOT_SEEN, UNWOUND = 1, 2, 16  # bpf/core/event.h
CALL_DEPTH = 16
LOSS_RING_FULL, LOSS_DEPTH = 1, 3


def build():
    """Builds sonde with family torture, the library and the target."""
    sonde = os.environ.get("SONDE_TORTURE")
    out = workdir()
    if not sonde:
        made = subprocess.run([os.path.join(ROOT, "tests/e2e/families.sh")], capture_output=True, text=True)
        if not ok(made.returncode == 0, "builds with a family that has placed calls", made.stderr):
            done()
        sonde = made.stdout.strip()
    subprocess.run(["g++", "-O2", "-fPIC", "-shared", "-pthread", f"{HERE}/libtorture.cpp", "-o",
                    f"{out}/libtorture.so"], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["g++", "-O2", "-pthread", f"{HERE}/torture.cpp", "-o", f"{out}/torture", f"-L{out}", "-ltorture",
                    f"-Wl,-rpath,{out}"], check=True)
    return sonde, f"{out}/torture"


class Run:
    def __init__(self, sonde, program, kind, hide):
        trace = os.path.join(workdir(), f"{kind}.sonde")
        target = subprocess.Popen([program, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        recording = Sonde(trace, "-t", "torture", "-p", str(target.pid), mode=hide, program=sonde)
        tracer, self.messages = recording.process, recording.messages
        self.truth, self.wrong, self.after = {}, [], None
        target.stdin.write("go\n")
        target.stdin.flush()
        for line in target.stdout:
            words = line.split()
            if words[0] == "truth":
                self.truth[words[1]] = tuple(int(w) for w in words[2:])
            else:
                self.wrong.append(line.strip())
            if words[0] == "wrong" and len(words) == 2:
                break
        tracer.send_signal(signal.SIGINT)
        self.messages += tracer.communicate(timeout=60)[1]
        self.recorded = tracer.returncode
        self.after = target.communicate("go\n", timeout=100)[0].strip()
        self.status = target.returncode
        self.read(trace)

    def read(self, trace):
        t = Trace(trace)
        names = t.strings
        probes = {e["number"]: names[e["name"]] for e in t.events("meta_probe")}
        self.calls = collections.defaultdict(list)
        for e in t.events("torture_placed", "torture_span"):
            name = probes[e["probe"]]
            if name.startswith("_ZN7torture"):
                name = name[len("_ZN7torture"):].lstrip("0123456789")[:-len("Emm")]
            self.calls[name].append(e)
        self.losses = collections.Counter()
        for e in t.events("meta_loss"):
            self.losses[e["reason"]] += e["count"]


def flags(calls):
    return dict(collections.Counter(c["flags"] for c in calls))


def seen(run, name):
    calls = run.calls[name]
    return len(calls), sum(c["a"] for c in calls), sum(c["b"] for c in calls)


def check_common(run, prefix, how):
    ok(run.wrong == ["wrong 0"], f"{how}: the program's results are right", "\n".join(run.wrong[:5]))
    ok(run.status == 0 and run.after == "after 0", f"{how}: results are right after detaching too, including exceptions",
       f"{run.status} {run.after} {run.messages if run.status else ''}")
    mask = (1 << 64) - 1
    # prefix p: functions with placed probes; s: with return probes. Functions without a prefix have placed probes.
    names = [n for n in run.truth if n.startswith(prefix + "_") and n[2:] != "recurse"] + \
        [n for n in run.truth if prefix == "p" and n[1] != "_"]
    bad = [(n, run.truth[n], seen(run, n)) for n in names
           if tuple(v & mask for v in seen(run, n)) != run.truth[n]]
    ok(names and not bad, f"{how}: each call of {len(names)} functions is recorded once with its arguments",
       "\n".join(map(str, bad)))
    ends = {n: flags(run.calls[f"{prefix}_{n}"]) for n in
            ("leaf", "tail", "call", "aligned", "alloca_sum", "branchy", "spin", "sigleaf", "forks", "jumped")}
    ok(all(list(e) == [0] for e in ends.values()), f"{how}: returns are recorded with signals, vfork and seccomp",
       ends)
    ok(flags(run.calls[f"{prefix}_jump"]) == {RETURN_NOT_SEEN: 1, 0: 1}, f"{how}: a call left by longjmp is marked so",
       flags(run.calls[f"{prefix}_jump"]))
    ok(flags(run.calls[f"{prefix}_execs"]) == {OPEN: 1} and flags(run.calls[f"{prefix}_exits"]) == {OPEN: 1},
       f"{how}: calls that end by exec and exit are open calls",
       (run.calls[f"{prefix}_execs"], run.calls[f"{prefix}_exits"]))
    deep = run.calls[f"{prefix}_recurse"]
    ok(flags(deep) == {0: CALL_DEPTH + 11} and run.losses[LOSS_DEPTH] == 501 - CALL_DEPTH,
       f"{how}: recursion to depth 500: {CALL_DEPTH} are recorded, the others counted as lost",
       (flags(deep), dict(run.losses)))


def check_placed(run, how):
    check_common(run, "p", how)
    raised = run.truth["outer"][0] // 2
    for name in ("thrower", "middle", "rethrows"):
        calls = run.truth[name][0]
        ok(flags(run.calls[name]) == {0: calls // 2, UNWOUND: calls // 2}, f"{how}: {calls // 2} of {calls} calls of "
           f"{name} are left by an exception", flags(run.calls[name]))
    ok(flags(run.calls["outer"]) == {0: raised * 2}, f"{how}: functions that catch the exception return", flags(run.calls["outer"]))
    calls = run.truth["bare"][0]
    ok(flags(run.calls["bare"]) == {0: calls // 2, RETURN_NOT_SEEN: calls // 2},
       f"{how}: a frame without code for exceptions is closed by the stack pointer", flags(run.calls["bare"]))
    ok(flags(run.calls["p_waits"]) == {UNWOUND: 1} and flags(run.calls["p_ends"]) == {UNWOUND: 1},
       f"{how}: pthread_cancel and pthread_exit in a call are recorded and run destructors",
       (run.calls["p_waits"], run.calls["p_ends"]))
    nested(run, how)


def nested(run, how):
    """Each call of `thrower` must be within a call of `outer`, which calls it by way of other functions."""
    outers = sorted((c["start"], c["time"]) for c in run.calls["outer"])
    starts = [s for s, _ in outers]
    import bisect
    stray = 0
    for c in run.calls["thrower"]:
        i = bisect.bisect_right(starts, c["start"]) - 1
        stray += i < 0 or c["time"] > outers[i][1]
    ok(not stray, f"{how}: calls lie within their callers", stray)


def recorded(*args):
    """The recording of which the most records are not lost: the program floods the ring, and a worker that gets no CPU loses some."""
    for _ in range(3):
        run = Run(*args)
        if not run.losses[LOSS_RING_FULL]:
            break
    ok(not run.losses[LOSS_RING_FULL], f"{args[2:]}: no record is lost", dict(run.losses))
    return run


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    if not shutil.which("g++"):
        skip_all("g++ is not installed")
    sonde, program = build()
    for hide in () if sys.argv[1:] == ["span"] else ("", "no-session", "no-session,no-multi"):
        link = {"": "session", "no-session": "multi", "no-session,no-multi": "perf"}[hide]
        check_placed(recorded(sonde, program, "placed", hide), f"placed, {link} links")
    run = recorded(sonde, program, "span", "")
    if "no duration" in run.messages:
        skip("spans", "this kernel has no session links")
    else:
        check_common(run, "s", "span")
    done()


main()

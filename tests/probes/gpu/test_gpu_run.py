#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs tests/gpu/run with the doubles, so that its rare runs on a machine with a GPU don't fail because of the script."""
# test: timeout=240
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from shim_lib import BUILD, ROOT, versions
from tap import done, ok, skip
from waiting import wait_for

RUN = os.path.join(ROOT, "tests", "gpu", "run")
tmp = tempfile.mkdtemp(prefix="sonde-gpu-run-")


def run(*args, timeout=200, **env):
    out = os.path.join(tmp, "out.json")
    r = subprocess.run([RUN, "--out", out, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=timeout, env=dict(os.environ, **env))
    result = None
    if os.path.exists(out):
        with open(out) as f:
            result = json.load(f)
        os.unlink(out)
    return r, result


def everything():
    r, result = run("--doubles", "--minutes", "3")
    bad = [c for c in result["checks"] if c["result"] == "failed"]
    ok(r.returncode == 0 and not bad and result["complete"], "all parts run with the doubles", r.returncode, bad, r.stdout[-2000:])
    last = r.stdout.strip().splitlines()[-1]
    want = f"{result['passed']} passed, {result['failed']} failed, {result['skipped']} skipped"
    ok(last == want and len(result["checks"]) == result["passed"] + result["failed"] + result["skipped"], "the last line has the totals", last, want)
    states = {name: p["state"] for name, p in result["parts"].items()}
    ok(set(states) == {"machine", "build", "program", "ebpf", "cudart", "pytorch", "overhead", "behaviours"} and
       all(s == "done" or name == "ebpf" and s == "skipped" for name, s in states.items()), "each part runs and passes", states)
    ok(all(c["why"] for c in result["checks"] if c["result"] == "skipped"), "each skipped part has a reason")
    passed = {p for p in states if any(c["part"] == p and c["result"] == "passed" for c in result["checks"])}
    ok(passed >= {"program", "cudart", "pytorch", "overhead", "behaviours"}, "each part checks something", passed)
    ok(result["machine"]["kernel"] and result["figures"]["overhead"] and result["machine"]["gpus"], "the facts of the machine and the figures are printed")


def a_shim_that_lies():
    """The checks find faults: a lost record, and a wrong clock."""
    r, result = run("--doubles", "--only", "program", FAKE_CUPTI_MORE="drop=5")
    bad = [c["name"] for c in result["checks"] if c["result"] == "failed"]
    ok(r.returncode == 1 and "from the first on: nothing dropped" in bad, "records that CUPTI drops are a failure", r.returncode, bad)
    r, result = run("--doubles", "--only", "program", FAKE_CUPTI_MORE="taken=1")
    bad = [c["name"] for c in result["checks"] if c["result"] == "failed"]
    ok(r.returncode == 1 and len(bad) >= 5, "a CUPTI that another profiler uses is a failure", r.returncode, bad)


def waits_side_by_side():
    """Two threads wait at once, and the program's times are around the waits; the times, in ns, are those of a real run."""
    sys.path[:0] = [os.path.join(ROOT, "tests", "gpu"), os.path.join(ROOT, "tests", "lib")]
    from judge import Joined, check_waits
    from shimmed import Reported

    class Checks:
        def ok(self, passed, *why, **figures):
            self.passed = passed

    def op(kind, stream, begin, end, tid):
        return {"op": kind, "kind": 3, "stream": stream, "begin": begin, "end": end, "tid": tid, "bytes": 8, "name": "", "event_ns": 0}

    def verdict(waits, noted=((1, 200000, 229293), (3, 215678, 237931)), kind=3):
        """The result for these records, (stream, start, end)."""
        reported, ops = {k: [] for k in ("name", "shim", "clock", "dropped", "kernel", "memcpy", "memset", "graph", "sync", "call")}, []
        for i, stream in enumerate((1, 3)):
            ops.append(op("set", stream, 1000, 2000, i))
            reported["call"].append({"tid": i, "start": 1100, "time": 1900, "correlation": i})
            reported["memset"].append({"correlation": i, "bytes": 8, "context": 1, "stream": 12 + stream, "start": 3000, "time": 4000})
        ops += [dict(op("sync", stream, begin, end, stream), kind=kind) for stream, begin, end in noted]
        reported["sync"] = [{"kind": kind, "context": 1, "stream": stream, "start": start, "time": end} for stream, start, end in waits]
        checks = Checks()
        check_waits(checks, "", Joined(ops, Reported(reported)))
        return checks.passed

    both = ((13, 217824, 218855), (15, 235264, 236256))
    ok(verdict(both), "overlapping waits: each has its record, although one is closer to the other's")
    none = 0xffffffff
    context = [(none, start, end) for _, start, end in both]
    ok(verdict(context, kind=4), "overlapping waits: also those without a stream")
    bad = {"the first is missing": verdict(both[1:]), "the second is missing": verdict(both[:1]),
           "one is in the wrong stream": verdict((both[0], (13, *both[1][1:]))),
           "they are exchanged": verdict(((15, *both[0][1:]), (13, *both[1][1:]))),
           "one is too early": verdict((both[0], (15, 213000, 236256))), "one ends too late": verdict((both[0], (15, 235264, 240100))),
           "one of no stream is missing": verdict(context[:1], kind=4)}
    ok(not any(bad.values()), "overlapping waits: faults are found", bad)


def little_time():
    r, result = run("--doubles", "--minutes", "0.25", FAKE_CUPTI_MORE="flush_ms=4000")
    states = [p["state"] for p in result["parts"].values()]
    ok(result["complete"] and ("late" in states or "no time" in states),
       "a slow CUPTI: the run ends in time, and the remaining parts are skipped by name",
       states, r.stdout[-1500:])
    out = os.path.join(tmp, "ended.json")
    p = subprocess.Popen([RUN, "--doubles", "--out", out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: os.path.exists(out) and open(out).read().count('"result"') > 5, 60, 0.1)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    with open(out) as f:
        result = json.load(f)
    ok(result["ended_by"] == "SIGTERM" and not result["complete"] and result["passed"] > 3, "a run ended by a signal keeps the results so far",
       result.get("ended_by"), result["passed"])


def usage():
    r, result = run("--help")
    ok(r.returncode == 0 and "--minutes" in r.stdout and "examples:" in r.stdout and result is None, "--help")
    r, _ = run("--only", "nothing")
    ok(r.returncode == 2 and "there are machine, build, program" in r.stdout, "a part that does not exist", r.stdout)


def kernels():
    """NVIDIA's own compiler, if installed, accepts the kernels' PTX."""
    tool = next(iter([p for p in [shutil.which("ptxas")] if p] + sorted(glob.glob("/usr/local/cuda*/bin/ptxas"))), None)
    if not tool:
        skip("the kernels' PTX is valid", "ptxas is not installed")
        return
    for older in ((), ("older",)):
        text = os.path.join(tmp, "kernels.ptx")
        with open(text, "w") as f:
            f.write(subprocess.run([os.path.join(BUILD, "tests/gpu/work"), "ptx", *older], stdout=subprocess.PIPE, text=True, check=True).stdout)
        for target in ("sm_80", "sm_90"):
            r = subprocess.run([tool, f"-arch={target}", text, "-o", os.path.join(tmp, "cubin")], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
            ok(r.returncode == 0, f"the kernels' PTX is valid, {'older' if older else 'newer'} text for {target}", r.stdout)


def shim_alone():
    """Runs `make shim` without the packages of scripts/deps.sh."""
    binaries, build = os.path.join(tmp, "bin"), os.path.join(tmp, "build")
    os.makedirs(binaries)
    for name, text in (("dpkg-query", "exit 0"), ("apt-get", "echo apt-get was called; exit 1"), ("clang", "exit 1"), ("bpftool", "exit 1")):
        with open(os.path.join(binaries, name), "w") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(f.name, 0o755)
    env = {k: v for k, v in os.environ.items() if k not in ("B", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "SONDE_NO_DEPS")}
    r = subprocess.run(["make", "-C", ROOT, "--no-print-directory", "-s", "B=" + build, "shim"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(env, PATH=binaries + ":" + env["PATH"]))
    needed = set()
    for name in ("libsonde-cupti.so", "tests/gpu/work"):
        out = subprocess.run(["readelf", "-d", os.path.join(build, name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", out))
    ok(r.returncode == 0 and "apt-get" not in r.stdout and "libc.so.6" in needed and
       needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}, "make shim needs only gcc and libc", r.stdout[-800:], needed)


def without_a_gpu():
    """On a machine without a GPU the run says so and ends soon."""
    if os.path.exists("/dev/nvidiactl"):
        print("# there is a GPU here")
        return
    r, result = run("--only", "program", "--minutes", "1", timeout=100, SONDE_GPU_BUILD="0")
    bad = [c["name"] for c in result["checks"] if c["result"] == "failed"]
    ok(r.returncode == 1 and "libcuda.so.1 is there" in bad and any(
        c["part"] == "program" and "libcuda" in c.get("why", "") for c in result["checks"]), "no GPU: the run says so", r.stdout[-1500:])


versions()
usage()
shim_alone()
kernels()
waits_side_by_side()
everything()
a_shim_that_lies()
little_time()
without_a_gpu()
done()

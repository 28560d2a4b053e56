#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
# It runs alone: closing its perf events takes a global lock in the kernel.
"""-p: the given processes, the children they had and the ones they fork later are recorded, and no other process, with each kind
of link."""
import glob
import os
import signal
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from puppet import fake_runtime
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

NO_DURATION = 4
ROUNDS, THREADS = 50, 3
A_ROUND = {"cudaMalloc": 1, "cudaMemcpyAsync": 1, "cudaLaunchKernel": 1, "cudaMemcpy": 1, "cudaStreamSynchronize": 1,
           "cudaFree": 1}


def calls(path):
    """({pid: {function: calls}}, number of calls without a duration, number of probe hits that the filter excluded)"""
    trace = Trace(path)
    names = {e["number"]: trace.strings.get(e["name"], e["name"]) if isinstance(e["name"], int) else e["name"]
             for e in trace.events("meta_probe")}
    counts, short = {}, 0
    for kind in ("cuda_alloc", "cuda_free", "cuda_copy", "cuda_launch", "cuda_sync"):
        for e in trace.events(kind):
            of = counts.setdefault(e["pid"], {})
            of[names[e["probe"]]] = of.get(names[e["probe"]], 0) + 1
            short += bool(e["flags"] & NO_DURATION)
    skipped = sum(e["skipped"] for e in trace.events("meta_hits"))
    return counts, short, skipped


def record(program, mode, env):
    """Records with -p a shell that has a child and starts another one, beside an unrelated process."""
    path = os.path.join(TMP, f"{mode or 'session'}.sonde")
    command = f"{program} 0 {ROUNDS}"
    shell = subprocess.Popen(["sh", "-c", f"(read go; exec {command}) <&3 & echo $!; read go; {program} 0 {ROUNDS} & echo $!; wait"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=(3,), env=env)
    child = int(shell.stdout.readline())
    sonde = Sonde(path, "-t", "cuda", "-p", str(shell.pid), mode=mode)
    os.write(gate, b"go\n")
    shell.stdin.write("go\n")
    shell.stdin.flush()
    later = int(shell.stdout.readline())
    shell.wait(60)
    return path, child, later, sonde.end(None)


programs = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
if not programs:
    skip("-p", "no CUDA runtime library is available")
    done()
r, gate = os.pipe()
os.dup2(r, 3)
os.set_inheritable(3, True)
expected = {name: n * ROUNDS * THREADS for name, n in A_ROUND.items()}
for mode in ("", "no-session", "no-session,no-multi"):
    name = {"": "session links", "no-session": "multi links", "no-session,no-multi": "perf events"}[mode]
    env = fake_runtime() if "no-multi" in mode else dict(os.environ)
    stranger = subprocess.Popen([programs[0], "120"], env=env)
    try:
        path, child, later, status = record(programs[0], mode, env)
        counts, short, skipped = calls(path)
        ok(status == 0, f"{name}: recorded", status)
        ok(counts.get(child) == expected, f"{name}: an existing child is followed, each call once", counts.get(child))
        ok(counts.get(later) == expected, f"{name}: a child forked later is followed", counts.get(later))
        ok(set(counts) == {child, later}, f"{name}: no other process is recorded", (set(counts), child, later))
        ok(skipped > 0, f"{name}: calls that the filter excluded are counted", skipped)
        if not mode:
            ok(not short, f"{name}: every call has its duration", short)
    finally:
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()
done()

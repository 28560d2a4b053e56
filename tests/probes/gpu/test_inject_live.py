#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits gate
"""Recordings of programs into which the shim was loaded while they ran: they have all later work of the simulated device."""
import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile

from inject_lib import SONDE, Target, changed_text, has_shim, inject
from shim_lib import (
    DOUBLES,
    SHIM,
    STARTED,
    STOPPED,
    compare,
    read_truth,
    training,
    versions,
)
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip, skip_all
from waiting import wait_for, wait_state

EVERYTHING = ("kernel", "memcpy", "memset", "sync", "memory", "call")
FORKER = """
import os, sys, time
open("/proc/self/comm", "w").write("sondeinjected")
print("ready", flush=True)
sys.stdin.readline()
pid = os.fork()
if pid:
    print("forked", flush=True)
time.sleep(60)
"""
tmp = tempfile.mkdtemp(prefix="sonde-injected-")
os.chmod(tmp, 0o755)
number = 0


class Training(Target):
    """A training that has initialized CUDA and begins its work on request"""

    def __init__(self, version, *args, container=None, comm=None):
        global number
        number += 1
        self.dir = os.path.join(tmp, str(number))
        os.mkdir(self.dir)
        self.truth_path = os.path.join(self.dir, "truth")
        env = {k: v for k, v in os.environ.items() if k != "CUDA_INJECTION64_PATH"}
        program = training(version)
        if comm:
            os.symlink(program, os.path.join(self.dir, comm))
            program = os.path.join(self.dir, comm)
        env.update(FAKE_CUDA="", FAKE_CUPTI="", FAKE_CUDA_TRUTH="/work/truth" if container else self.truth_path)
        super().__init__([f"/bound/{version}/fake_training" if container else program, "-w", *args], container, self.dir,
                         [os.path.join(DOUBLES, version)], env)


class Recorder:
    """A recording, once the shims of these processes have begun to record: a dormant one looks for a tracer once a second."""

    def __init__(self, *args, pids=(), kernels=0):
        global number
        number += 1
        self.sonde = Sonde(os.path.join(tmp, f"{number}.sonde"), *args)
        self.child = self.sonde.process
        self.sonde.wait_trace(lambda trace: set(pids) <= {e["pid"] for e in trace.events("gpu_shim") if e["state"] == STARTED} and
                              len(list(trace.events("gpu_kernel"))) >= kernels)

    @property
    def text(self):
        return self.sonde.messages

    def stop(self, sig=signal.SIGINT):
        status = self.sonde.end(sig)
        self.trace = Trace(self.sonde.path)
        self.got = collections.defaultdict(list)
        for kind in EVERYTHING + ("name", "clock", "dropped", "shim"):
            self.got[kind] += self.trace.events(f"gpu_{kind}")
        self.names = {e["name"]: e["text"] for e in self.got["name"]}
        self.error = max((e["error"] for e in self.got["clock"]), default=0) + 3
        self.lost = [e for e in self.trace.events("meta_loss") if e["family"] == 13 and e["reason"] != 8]
        return status


def whole(label, t, r, status, want=0):
    truth = read_truth(t.truth_path)
    lost = [e for e in r.lost + r.got["dropped"] if e["pid"] in (0, t.pid)]
    ok(status == want and not lost, f"{label}: no losses", status, r.text, lost)
    states = [e["state"] for e in r.got["shim"] if e["pid"] == t.pid]
    ok(states == [STARTED, STOPPED], f"{label}: the shim began and ended", states)
    untraced = [e for k in ("kernel", "copy", "set") for e in truth[k] if not e["traced"]]
    ok(truth["kernel"] and not untraced, f"{label}: all {len(truth['kernel'])} kernels were traced", untraced[:3])
    compare(label, truth, {k: [e for e in v if e["pid"] == t.pid] for k, v in r.got.items()}, EVERYTHING, r.names, r.error)


def by_path(version):
    t = Training(version, "-n", "100", "-p", "1000", "-t", "2")
    r = inject(t.pid)
    ok(r.returncode == 0 and "from memory" not in r.stdout, "loaded, then recorded", r.stdout, r.stderr)
    r = Recorder("-t", "gpu", "-p", str(t.pid), pids=[t.pid])
    ok(t.end() == 0, "loaded, then recorded: the program succeeds", t.errors)
    whole("loaded, then recorded", t, r, r.stop(None))


def in_containers(version):
    for name in ("unshare", "bwrap", "crun"):
        if name == "crun":
            # the container's configuration has the environment
            os.environ.update(FAKE_CUDA="", FAKE_CUPTI="", FAKE_CUDA_TRUTH="/work/truth")
        t = Training(version, "-n", "60", "-p", "1000", container=name) if shutil.which(name) else None
        if not t or not t.ready:
            skip(name, "no such container can be made here")
            continue
        # without -p of the shell, which created the container and has no CUDA
        r = Recorder("--inject", "-t", "gpu", "-p", str(t.pid), pids=[t.pid])
        with open(f"/proc/{t.pid}/maps") as f:
            ok("/memfd:libsonde-cupti.so" in f.read(), f"{name}: loaded from memory", r.text)
        ok(t.end() == 0, f"{name}: the program succeeds", t.errors)
        whole(f"{name}, record --inject", t, r, r.stop(None))


def by_name(version):
    """With a filter the shim is loaded into the selected processes with CUDA. A process that refuses it is reported, and the recording continues."""
    name = f"named{os.getpid()}"  # other tests run the same program
    a, b = (Training(version, "-n", "40", "-p", "1000", comm=name) for _ in range(2))
    other = Training(version, "-n", "1", comm=name)
    os.kill(other.pid, signal.SIGSTOP)
    wait_state(other.pid, "T")
    r = Recorder("--inject", "--comm", name, pids=[a.pid, b.pid])
    ok(f"process {other.pid} will have no device times: it is stopped" in r.text, "--comm: the refusing process is reported", r.text)
    ends = a.end(), b.end()
    status = r.stop()
    ok(ends == (0, 0), "--comm: the programs succeed", a.errors, b.errors)
    for t in (a, b):
        whole("--comm, -t +gpu by itself", t, r, status, 3)
    os.kill(other.pid, signal.SIGCONT)
    other.end()
    r = subprocess.run([SONDE, "record", "-o", os.path.join(tmp, "none.sonde"), "--inject", "-d", "1"], capture_output=True, text=True)
    ok(r.returncode == 2 and "needs processes" in r.stderr, "--inject without a filter: wrong usage", r.stderr)


def semaphores(pid):
    """The number of semaphores that the kernel has raised"""
    out = subprocess.run(["nm", "-D", SHIM], capture_output=True, text=True, check=True).stdout
    offsets = [int(a, 16) for a in re.findall(r"^(\w+) D sonde_cupti_semaphore_", out, re.M)]
    with open(f"/proc/{pid}/maps") as f:
        base = min(int(line.split("-")[0], 16) for line in f if "libsonde-cupti" in line)
    raised = 0
    with open(f"/proc/{pid}/mem", "rb") as f:
        for o in offsets:
            f.seek(base + o)
            raised += any(f.read(64))
    return raised


def afterwards(version):
    """Attaches and detaches repeatedly, with the shim loaded from memory: afterwards all semaphores are 0 and the code equals the file."""
    t = Training(version, "-n", "100000", "-p", "1000", container="bwrap" if shutil.which("bwrap") else "unshare")
    if not t.ready:
        skip("afterwards", "no such container can be made here")
        return
    inject(t.pid)
    t.go()
    for i in range(2):
        r = Recorder("-t", "gpu", "-p", str(t.pid), pids=[t.pid], kernels=51)
        raised = semaphores(t.pid)
        status = r.stop()
        kernels = r.got["kernel"]
        ok(status == 0 and raised == 6 and len(kernels) > 50 and all(k["name"] in r.names for k in kernels),
           f"attached, {i + 1}: semaphores are raised, kernels are recorded", status, raised, len(kernels), r.text)
        ok(wait_for(lambda: not semaphores(t.pid) and not changed_text(t.pid, ("libsonde-cupti",))),
           f"detached, {i + 1}: no semaphore is raised, no breakpoint is left", semaphores(t.pid), changed_text(t.pid, ("libsonde-cupti",)))
    r = Recorder("-t", "gpu", "-p", str(t.pid), pids=[t.pid])
    r.child.kill()
    r.child.communicate()
    ok(wait_for(lambda: not semaphores(t.pid) and not changed_text(t.pid, ("libsonde-cupti",))),
       "sonde is killed: no semaphore is raised, no breakpoint is left",
       semaphores(t.pid), changed_text(t.pid, ("libsonde-cupti",)))
    ended = wait_for(lambda: not any(e["traced"] for e in read_truth(t.truth_path)["kernel"][-100:]), 60, 0.5)
    t.kill()
    ok(ended, "no activity is left enabled")


def forks():
    """The shim has no file name: a child process must still get its own semaphores."""
    t = Target(["/usr/bin/python3", "-c", FORKER], "bwrap", tmp, [tmp]) if shutil.which("bwrap") else None
    if not t or not t.child or not t.first.startswith("ready"):
        skip("forks", "no such container can be made here")
        return
    pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and comm(p) == "sondeinjected")
    r = inject(pid)
    ok(r.returncode == 0 and "from memory" in r.stdout and has_shim(pid), "loaded into a program that forks later", r.stdout, r.stderr)
    recorder = Recorder("-t", "gpu", "--comm", "sondeinjected")
    ok(wait_for(lambda: semaphores(pid) == 6), "its semaphores are raised", semaphores(pid))
    t.go()
    t.child.stdout.readline()
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        child = int(f.read().split()[0])
    ok(wait_for(lambda: semaphores(child) == 6), "its child's semaphores are raised, by links of its own", semaphores(child))
    os.kill(pid, 9)
    recorder.stop()
    ok(os.path.exists(f"/proc/{child}") is False or wait_for(lambda: not semaphores(child)), "the semaphores are lowered when sonde ends")
    # it holds the output open that communicate() reads to its end
    os.kill(child, 9)
    t.child.kill()
    t.child.communicate()


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


if os.geteuid():
    skip_all("tracing needs root")
version = versions()[-1]
by_path(version)
in_containers(version)
by_name(version)
afterwards(version)
forks()
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""Recordings of programs that the shim was loaded into while they ran: all that the simulated device did from then on."""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from inject_lib import SONDE, Target, changed_text, has_shim, inject, wait_for
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
from sonde_trace import Trace
from tap import done, ok, skip, skip_all

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
    """CUDA is there; it trains once it is let go."""

    def __init__(self, version, *args, container=None):
        global number
        number += 1
        self.dir = os.path.join(tmp, str(number))
        os.mkdir(self.dir)
        self.truth_path = os.path.join(self.dir, "truth")
        env = {k: v for k, v in os.environ.items() if k != "CUDA_INJECTION64_PATH"}
        program = training(version)
        env.update(FAKE_CUDA="", FAKE_CUPTI="", FAKE_CUDA_TRUTH="/work/truth" if container else self.truth_path)
        super().__init__([f"/bound/{version}/fake_training" if container else program, "-w", *args], container, self.dir,
                         [os.path.join(DOUBLES, version)], env)


class Recorder:
    def __init__(self, *args):
        global number
        number += 1
        self.path, self.text = os.path.join(tmp, f"{number}.sonde"), ""
        self.child = subprocess.Popen([SONDE, "record", "-f", "-o", self.path, *args], stderr=subprocess.PIPE, text=True)
        while "tracing into" not in self.text:
            line = self.child.stderr.readline()
            if not line:
                break
            self.text += line
        # a shim that sleeps looks once a second
        time.sleep(1.4)

    def stop(self, sig=signal.SIGINT):
        if sig:
            self.child.send_signal(sig)
        self.text += self.child.communicate(timeout=60)[1]
        self.trace = Trace(self.path)
        self.got = collections.defaultdict(list)
        for kind in EVERYTHING + ("name", "clock", "dropped", "shim"):
            self.got[kind] += self.trace.events(f"gpu_{kind}")
        self.names = {e["name"]: e["text"] for e in self.got["name"]}
        self.error = max((e["error"] for e in self.got["clock"]), default=0) + 3
        self.lost = [e for e in self.trace.events("meta_loss") if e["family"] == 13 and e["reason"] != 8]
        return self.child.returncode


def whole(label, t, r, status, want=0):
    truth = read_truth(t.truth_path)
    ok(status == want and not r.lost and not r.got["dropped"], f"{label}: nothing lost", status, r.text, r.lost, r.got["dropped"])
    states = [e["state"] for e in r.got["shim"] if e["pid"] == t.pid]
    ok(states == [STARTED, STOPPED], f"{label}: the shim began and ended", states)
    untraced = [e for k in ("kernel", "copy", "set") for e in truth[k] if not e["traced"]]
    ok(truth["kernel"] and not untraced, f"{label}: all {len(truth['kernel'])} kernels were traced", untraced[:3])
    compare(label, truth, {k: [e for e in v if e["pid"] == t.pid] for k, v in r.got.items()}, EVERYTHING, r.names, r.error)


def by_path(version):
    t = Training(version, "-n", "100", "-p", "1000", "-t", "2")
    r = inject(t.pid)
    ok(r.returncode == 0 and "from memory" not in r.stdout, "loaded, then recorded", r.stdout, r.stderr)
    r = Recorder("-t", "gpu", "-p", str(t.pid))
    ok(t.end() == 0, "loaded, then recorded: it ends well", t.errors)
    whole("loaded, then recorded", t, r, r.stop(None))


def in_containers(version):
    for name in ("unshare", "bwrap", "crun"):
        if name == "crun":
            # its environment is in its configuration
            os.environ.update(FAKE_CUDA="", FAKE_CUPTI="", FAKE_CUDA_TRUTH="/work/truth")
        t = Training(version, "-n", "60", "-p", "1000", container=name) if shutil.which(name) else None
        if not t or not t.ready:
            skip(name, "no such container can be made here")
            continue
        # -p is not asked for the rest: the shell that made the container has no CUDA
        r = Recorder("--inject", "-t", "gpu", "-p", str(t.pid))
        with open(f"/proc/{t.pid}/maps") as f:
            ok("/memfd:libsonde-cupti.so" in f.read(), f"{name}: from memory", r.text)
        ok(t.end() == 0, f"{name}: it ends well", t.errors)
        whole(f"{name}, record --inject", t, r, r.stop(None))


def by_name(version):
    """By a filter, into those that have CUDA; one that can't be loaded into is reported, and the trace goes on."""
    a, b = (Training(version, "-n", "40", "-p", "1000") for _ in range(2))
    other = Training(version, "-n", "1")
    os.kill(other.pid, signal.SIGSTOP)
    time.sleep(0.1)
    r = Recorder("--inject", "--comm", "fake_training")
    ok(f"process {other.pid} will have no device times: it is stopped" in r.text, "--comm: what was refused is reported", r.text)
    ends = a.end(), b.end()
    status = r.stop()
    ok(ends == (0, 0), "--comm: they end well", a.errors, b.errors)
    for t in (a, b):
        whole("--comm, -t +gpu by itself", t, r, status, 3)
    os.kill(other.pid, signal.SIGCONT)
    other.end()
    r = subprocess.run([SONDE, "record", "-o", os.path.join(tmp, "none.sonde"), "--inject", "-d", "1"], capture_output=True, text=True)
    ok(r.returncode == 2 and "into which processes" in r.stderr, "into an unknown process: wrong usage", r.stderr)


def semaphores(pid):
    """How many words the kernel has raised."""
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
    """On and off while it trains, from memory: each time all words are 0 again, and the code is the file's."""
    t = Training(version, "-n", "100000", "-p", "1000", container="bwrap" if shutil.which("bwrap") else "unshare")
    if not t.ready:
        skip("afterwards", "no such container can be made here")
        return
    inject(t.pid)
    t.go()
    for i in range(2):
        r = Recorder("-t", "gpu", "-p", str(t.pid))
        raised = semaphores(t.pid)
        status = r.stop()
        kernels = r.got["kernel"]
        ok(status == 0 and raised == 6 and len(kernels) > 50 and all(k["name"] in r.names for k in kernels),
           f"on, {i + 1}: its words are raised, kernels come", status, raised, len(kernels), r.text)
        ok(wait_for(lambda: not semaphores(t.pid)) and not changed_text(t.pid, ("libsonde-cupti",)),
           f"off, {i + 1}: no word is raised and no breakpoint left", semaphores(t.pid), changed_text(t.pid, ("libsonde-cupti",)))
    r = Recorder("-t", "gpu", "-p", str(t.pid))
    r.child.kill()
    r.child.communicate()
    ok(wait_for(lambda: not semaphores(t.pid)) and not changed_text(t.pid, ("libsonde-cupti",)), "sonde is killed: neither",
       semaphores(t.pid))
    # the shim looks ten times a second while it is on
    time.sleep(1)
    t.kill()
    truth = read_truth(t.truth_path)
    last = max(e["start"] for e in truth["kernel"])
    late = [e["traced"] for e in truth["kernel"] if e["start"] > last - 300_000_000]
    ok(late and not any(late), "no activity is enabled any more", len(late), sum(map(bool, late)))


def forks():
    """The shim has no file by name: a child maps its pages of control anew all the same."""
    t = Target(["/usr/bin/python3", "-c", FORKER], "bwrap", tmp, [tmp]) if shutil.which("bwrap") else None
    if not t or not t.child or not t.first.startswith("ready"):
        skip("forks", "no such container can be made here")
        return
    pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and comm(p) == "sondeinjected")
    r = inject(pid)
    ok(r.returncode == 0 and "from memory" in r.stdout and has_shim(pid), "a program that will fork: loaded", r.stdout, r.stderr)
    recorder = Recorder("-t", "gpu", "--comm", "sondeinjected")
    ok(wait_for(lambda: semaphores(pid) == 6), "its words are raised", semaphores(pid))
    t.go()
    t.child.stdout.readline()
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        child = int(f.read().split()[0])
    ok(wait_for(lambda: semaphores(child) == 6), "its child's too, by links of its own", semaphores(child))
    os.kill(pid, 9)
    recorder.stop()
    ok(os.path.exists(f"/proc/{child}") is False or wait_for(lambda: not semaphores(child)), "and lowered again")
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

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Family gpu end to end: sonde record, the shim, and doubles of CUDA and CUPTI that log their work."""
# test: timeout=180 waits
import collections
import os
import re
import signal
import subprocess
import tempfile
import time

from inject_lib import descendant
from shim_lib import (
    IMPAIRED,
    REFUSED,
    ROOT,
    SHIM,
    STARTED,
    STOPPED,
    compare,
    read_truth,
    setting,
    training,
    versions,
    true_events,
)
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all
from waiting import wait_for

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
EVERYTHING = ("kernel", "memcpy", "memset", "sync", "memory", "call")
tmp = tempfile.mkdtemp(prefix="sonde-gpu-")
number = 0


def environment(cuda="", cupti="", **more):
    global number
    number += 1
    # cuInit waits for the probes for 300 ms at most, and for 1 s here: on a busy machine they may come later
    return dict(os.environ, FAKE_CUDA=cuda, FAKE_CUPTI=cupti, FAKE_CUDA_TRUTH=os.path.join(tmp, f"truth{number}"), **{"SONDE_CUPTI_WAIT": "1000", **more})


class Seen:
    """A trace's events of family gpu, in the form of shim_lib"""

    def __init__(self, path):
        self.trace = Trace(path)
        self.got = collections.defaultdict(list)
        for kind in EVERYTHING + ("graph", "name", "clock", "dropped", "shim", "device", "context", "stream"):
            for e in self.trace.events(f"gpu_{kind}"):
                self.got[kind].append(e)
        self.names = {e["name"]: e["text"] for e in self.got["name"]}
        self.error = max((e["error"] for e in self.got["clock"]), default=0) + 3
        self.lost = {(e["reason"], e["count"]) for e in self.trace.events("meta_loss") if e["family"] == 13 and e["reason"] != 8}


def record_command(label, version, *args, kinds=EVERYTHING, options=(), env=None):
    env, path = env or environment(), os.path.join(tmp, "command.sonde")
    r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "gpu", *options, "--", training(version), *args],
                       env=env, capture_output=True, text=True, timeout=100)
    seen, truth = Seen(path), read_truth(env["FAKE_CUDA_TRUTH"])
    ok(r.returncode == 0 and not seen.lost and not seen.got["dropped"], f"{label}: no losses", r.returncode, r.stderr,
       seen.lost, seen.got["dropped"])
    states = [e["state"] for e in seen.got["shim"]]
    ok(states == [STARTED, STOPPED], f"{label}: the shim began and ended", states)
    compare(label, truth, seen.got, kinds, seen.names, seen.error)
    return seen, truth


def commands():
    for v in versions():
        seen, truth = record_command(f"CUDA {v}", v, "-d", "2", "-t", "2", "-n", "100", "-p", "1000",
                                     env=environment(setting(devices=2), setting(ppm=100, jitter_ns=1000)))
        untraced = [e for k in ("kernel", "copy", "set", "memory") for e in truth[k] if not e["traced"]]
        ok(not untraced, f"CUDA {v}: work is recorded from the first kernel on", untraced[:3])
        ok({e["tid"] for e in seen.got["call"]} == {e["tid"] for e in true_events(truth, "call") if e["traced"]} and
           not any(e["tid"] for e in seen.got["kernel"]), f"CUDA {v}: calls have their thread, kernels have none")
        ok(seen.got["device"][0]["model"].startswith("Simulated GPU") and len(seen.got["stream"]) >= 4,
           f"CUDA {v}: devices and streams are described")
    v = versions()[-1]
    seen, _ = record_command("graphs", v, "-g", "-n", "50", kinds=EVERYTHING + ("graph",))
    ok(not [e for e in seen.got["kernel"] if e["graph"]], "graphs are recorded as a whole by default")
    seen, _ = record_command("--gpu=nodes", v, "-g", "-n", "50", options=["--gpu=nodes"])
    ok(len([e for e in seen.got["kernel"] if e["graph_node"]]) == 150 and not seen.got["graph"], "--gpu=nodes: each node is recorded")
    record_command("200,000 kernels", v, "-n", "400", "-k", "500", "-u", "1", "-p", "4000", kinds=("kernel", "call"))
    seen, truth = record_command("a program that forks", v, "-f", "-n", "40")
    env, path = environment(), os.path.join(tmp, "exec.sonde")
    r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "gpu", "--", training(v), "-x", "-n", "40", "-p", "2000"], env=env,
                       capture_output=True, text=True, timeout=60)
    # the exec loses the truth's last lines
    seen = Seen(path)
    states = [e["state"] for e in seen.got["shim"]]
    ok(r.returncode == 0 and states == [STARTED, STARTED, STOPPED] and not seen.lost, "a program that calls exec: both programs are traced",
       r.returncode, states, r.stderr, seen.lost)
    ok(len(seen.got["kernel"]) == 800, "a program that calls exec: each kernel is recorded", len(seen.got["kernel"]))
    record_command("device resets", v, "-r", "-n", "60", "-p", "2000")
    record_command("several contexts a device", v, "-c", "-d", "2", "-t", "4", "-n", "60", "-p", "2000",
                   env=environment(setting(devices=2)))
    record_command("8 devices, 64 streams", v, "-d", "8", "-t", "8", "-s", "64", "-n", "20", "-k", "64", "-p", "2000",
                   env=environment(setting(devices=8)))


class Late:
    """A running training with a dormant shim"""

    def __init__(self, version, *args, **more):
        self.env = environment(CUDA_INJECTION64_PATH=SHIM, SONDE_CUPTI_WAIT="", **more)
        self.child = subprocess.Popen([training(version), "-w", *args], env=self.env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.child.stdout.readline()
        self.pid = self.child.pid

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def semaphores(self):
        """The semaphores that the kernel has raised, read from the process's memory"""
        out = subprocess.run(["nm", "-D", SHIM], capture_output=True, text=True, check=True).stdout
        offsets = [int(a, 16) for a in re.findall(r"^(\w+) D sonde_cupti_semaphore_", out, re.M)]
        with open(f"/proc/{self.pid}/maps") as f:
            base = min(int(line.split("-")[0], 16) for line in f if "libsonde-cupti" in line)
        with open(f"/proc/{self.pid}/mem", "rb") as f:
            values = []
            for o in offsets:
                for slot in range(8):
                    f.seek(base + o + 8 * slot)
                    values.append(int.from_bytes(f.read(2), "little"))
        return values


def start_recording(name, *args):
    sonde = Sonde(os.path.join(tmp, name), "-t", "gpu", *args)
    p = sonde.process
    p.text = sonde.messages
    p.sonde = sonde
    return p, sonde.path


def wait_work(p, kernels=101):
    """
    Waits until the trace has this many kernels. The kernel raises the semaphores at once, but a dormant shim looks for a tracer once a
    second only.
    """
    return p.sonde.wait_trace(lambda t: any(e["state"] == STARTED for e in t.events("gpu_shim")) and len(list(t.events("gpu_kernel"))) >= kernels)


def stop_recording(p, sig=signal.SIGINT):
    p.send_signal(sig)
    p.text += p.communicate(timeout=30)[1]
    return p.returncode


def all_zero(late):
    return wait_for(lambda: not any(late.semaphores()), 60)


def next_pid_like(pid):
    """Makes the next pid equal modulo 8, if no other process starts in between."""
    for _ in range(100):
        p = subprocess.Popen(["/bin/true"])
        p.wait()
        if (p.pid + 1) % 8 == pid % 8:
            return


def older_graphs():
    """CUPTI 13.0.1, and its double, crash in the launch of a graph that was instantiated before graphs were to be traced as a whole"""
    late = Late(versions()[-1], "-g", "-o", "-n", "100000", "-p", "1000")
    late.go()
    p, path = start_recording("graphs.sonde", "-p", str(late.pid))
    alive = wait_work(p) and late.child.poll() is None
    stop_recording(p)
    late.child.kill()
    late.child.wait()
    seen = Seen(path)
    nodes = [e for e in seen.got["kernel"] if e["graph_node"]]
    ok(alive and nodes and not seen.got["graph"], "attached late: older graphs are recorded node by node, and go on", late.child.returncode, len(nodes),
       len(seen.got["graph"]))


def coming_and_going():
    late = Late(versions()[-1], "-n", "100000", "-p", "1000", "-k", "5")
    ok(not any(late.semaphores()), "attached late: all semaphores are 0 before")
    late.go()
    traces = []
    for i in range(2):
        p, path = start_recording(f"late{i}.sonde", "-p", str(late.pid))
        ok(wait_work(p) and sum(v > 0 for v in late.semaphores()) == 6, f"attached late, {i + 1}: the kernel has raised six groups", late.semaphores())
        status = stop_recording(p)
        ok("does not answer" not in p.text, f"attached late, {i + 1}: stops without an unnecessary wait", p.text)
        traces.append(Seen(path))
        ok(status == 0 and all_zero(late), f"attached late, {i + 1}: all semaphores are 0 afterwards", status, p.text, late.semaphores())
    # sonde can't notify the shim when it is killed, only the kernel does
    p, path = start_recording("killed.sonde", "-p", str(late.pid))
    wait_work(p)
    raised = sum(v > 0 for v in late.semaphores())
    stop_recording(p, signal.SIGKILL)
    ok(raised == 6 and all_zero(late), "sonde is killed: the shim is dormant again", raised, late.semaphores())
    # two tracers whose pids select the same slot; the first one ends
    p1, path1 = start_recording("one.sonde", "-p", str(late.pid))
    wait_work(p1)
    next_pid_like(p1.pid)
    p2, path2 = start_recording("two.sonde", "-p", str(late.pid))
    wait_work(p2)
    twice = late.semaphores()
    stop_recording(p1)
    ok("does not answer" not in p1.text, "two tracers: the first one stops at once", p1.text)
    time.sleep(0.7)
    stop_recording(p2)
    ok(sum(twice) == 12 and max(twice) == 1 and all_zero(late), "two tracers: each raises its semaphores, in its own slot",
       twice, late.semaphores())
    traces += [Seen(path1), Seen(path2)]
    late.child.kill()
    late.child.wait()
    for i, seen in enumerate(traces):
        states = [e["state"] for e in seen.got["shim"]]
        kernels = seen.got["kernel"]
        ok(states[0] == STARTED and len(kernels) > 100 and not seen.lost and all(k["name"] in seen.names for k in kernels),
           f"trace {i + 1}: kernels and their names", states, len(kernels), seen.lost, seen.names)
        correlations = collections.Counter(k["correlation"] for k in kernels)
        # the call of work launched just before the second tracer attached may have been reported before
        settled = seen.got["shim"][0]["time"] + 300000000
        ok(max(correlations.values()) == 1 and
           {k["correlation"] for k in kernels if k["start"] > settled} <= {c["correlation"] for c in seen.got["call"]},
           f"trace {i + 1}: each kernel is recorded once, with its call")
    for i, seen in enumerate(traces[:2]):
        ok([e["state"] for e in seen.got["shim"]] == [STARTED, STOPPED], f"trace {i + 1}: ended normally")
        # no gap in the work launched in between
        numbers = sorted(k["correlation"] for k in seen.got["kernel"] + seen.got["memcpy"] + seen.got["memset"])
        # the shim enables and disables one kind after the other
        begin, edge = seen.got["shim"][0]["time"], seen.got["shim"][-1]["time"] - 300000000
        calls = [c["correlation"] for c in seen.got["call"] if c["function"] in ((211, 41, 51, 31) if c["runtime"] else (307, 277, 216, 278)) and
                 begin < c["start"] < edge]
        missing = set(calls) - set(numbers)
        ok(calls and not missing, f"trace {i + 1}: no gap", sorted(missing)[:10])


def refusals():
    env = environment(cupti="taken=1")
    path = os.path.join(tmp, "taken.sonde")
    r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "gpu", "--", training(versions()[-1]), "-n", "50", "-p", "5000"],
                       env=env, capture_output=True, text=True, timeout=60)
    seen = Seen(path)
    ok(r.returncode == 0 and [e["state"] for e in seen.got["shim"]] == [REFUSED] and "another profiler" in r.stderr,
       "another profiler is active: sonde reports it, the program continues", r.returncode, r.stderr, seen.got["shim"])
    env = environment(cupti="flush=999,flush_after=3")
    r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "gpu", "--", training(versions()[-1]), "-n", "100", "-p", "5000"],
                       env=env, capture_output=True, text=True, timeout=60)
    ok(r.returncode == 0 and [e["state"] for e in Seen(path).got["shim"]] == [STARTED, IMPAIRED, STOPPED] and
       "does not give back its buffers" in r.stderr, "CUPTI fails while tracing: sonde reports it", r.returncode, r.stderr)
    env = environment(CUDA_INJECTION64_PATH="/nonexistent/other.so")
    r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "gpu", "--", training(versions()[-1])], env=env,
                       capture_output=True, text=True, timeout=60)
    ok(r.returncode == 0 and "CUDA_INJECTION64_PATH is set already" in r.stderr, "another injected library is not replaced", r.stderr)


def killed_target():
    late = Late(versions()[-1], "-n", "100000", "-p", "1000")
    late.go()
    p, path = start_recording("target.sonde", "-p", str(late.pid))
    wait_work(p)
    late.child.kill()
    late.child.wait()
    p.text += p.communicate(timeout=60)[1]
    seen = Seen(path)
    ok(p.returncode == 0 and [d["reason"] for d in seen.got["dropped"]] == [4],
       "a killed target: the trace reports that records are missing", p.text, seen.got["dropped"])


def recorded_while_asked():
    """A process that ends normally between sonde's query whether the shim is alive and the answer."""
    late = Late(versions()[-1], "-n", "20", "-p", "1000")
    p, path = start_recording("asked.sonde", "-p", str(late.pid))
    raised = wait_for(lambda: sum(v > 0 for v in late.semaphores()) == 6)
    wait_work(p, 0)
    opener = descendant(p.pid, "sonde-opener")
    os.kill(opener, signal.SIGSTOP)
    time.sleep(0.5)  # sonde queries four times a second
    late.go()
    late.child.wait(30)
    os.kill(opener, signal.SIGCONT)
    p.text += p.communicate(timeout=30)[1]
    return p, Seen(path), raised


def ends_while_asked():
    """The shim marks its last records as the last ones: nothing is missing, and the trace must not report a loss."""
    for i in range(2):
        for _ in range(3):
            p, seen, raised = recorded_while_asked()
            # sonde gives up after 2 s, which a very slow machine may exceed
            if "does not answer" not in p.text:
                break
        states = [e["state"] for e in seen.got["shim"]]
        ok(p.returncode == 0 and raised and states == [STARTED, STOPPED] and not seen.lost and not seen.got["dropped"],
           f"a target that ends normally during sonde's query, {i + 1}: no loss is reported", p.returncode, states,
           seen.lost, seen.got["dropped"], p.text)


if os.geteuid():
    skip_all("tracing needs root")
versions()
commands()
older_graphs()
coming_and_going()
refusals()
killed_target()
ends_while_asked()
done()

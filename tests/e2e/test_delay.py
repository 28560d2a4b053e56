#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""--delay: nothing before the start is recorded, everything after it is, and -d counts from the start."""
import os
import signal
import subprocess
import time

from puppet import SONDE, TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok
from waiting import wait_for


def path(name):
    return os.path.join(TMP, name)


def every_time(trace):
    """The start of each event of the targets, without events that are marked as begun before or that describe existing state."""
    return [e.get("start", e["time"]) for kind in ("cuda_alloc", "proc_task", "proc_image", "proc_map", "proc_fork")
            for e in trace.events(kind)]


def by_signal():
    puppet = Puppet()
    sonde = Sonde(path("signal"), "-t", "cuda,proc", "-p", str(puppet.pid), "--delay", "signal", until="SIGUSR1")
    puppet.do("calls 1 10")
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    sonde.process.send_signal(signal.SIGUSR1)
    sonde.wait_for("tracing into")
    puppet.do("calls 11 10")
    # a second signal has no effect
    sonde.process.send_signal(signal.SIGUSR1)
    puppet.do("calls 21 10")
    status = sonde.end()
    trace = Trace(path("signal"))
    ok(status == 0 and allocs(trace) == numbered(puppet.pid, 11, 20), "signal: exactly the calls after the start",
       (allocs(trace), sonde.messages))
    ok(all(t >= began for t in every_time(trace)), "signal: no event is older than the signal")
    puppet.end()


def by_time():
    puppet = Puppet()
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    sonde = Sonde(path("time"), "-t", "cuda,proc", "-p", str(puppet.pid), "--delay", "0.7", "-d", "0.5", until="starts in")
    puppet.do("calls 1 10")
    sonde.wait_for("tracing into")
    first = 1000
    while sonde.process.poll() is None:
        puppet.do(f"calls {first} 10")
        first += 10
    status = sonde.end(sig=None)
    trace = Trace(path("time"))
    got = [n for _, n in allocs(trace)]
    times = every_time(trace)
    ok(status == 0 and got and got == list(range(1000, 1000 + len(got))),
       "seconds: every call from the start to the end, none before", got[:5])
    ok(min(times) >= began + 700_000_000, "seconds: no event is older than the start")
    end = [e["time"] for e in trace.events("meta_end")]
    ok(len(end) == 1 and end[0] >= began + 1_200_000_000, "-d counts from the start")
    puppet.end()


def early_signal(sig, *options):
    """A signal that arrives while programs are being loaded, as of a script that starts sonde and does not wait"""
    out = path("early")
    for _ in range(4):
        process = subprocess.Popen([SONDE, "record", "-q", "-f", "-o", out, "-t", "proc", *options], stderr=subprocess.PIPE)
        wait_for(lambda pid=process.pid: handles(pid, sig))
        process.send_signal(sig)
        # the file is created when the programs are loaded; on a busy machine the signal may come later than that
        before = not os.path.exists(out)
        wait_for(lambda: os.path.exists(out))
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        os.unlink(out)
        if before or process.returncode:
            break
    ok(before and process.returncode == 0, f"{sig.name} while sonde starts does not end it", process.stderr.read())


def handles(pid, sig):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("SigCgt")).split()[1], 16) >> (sig - 1) & 1


def with_ends():
    puppet = Puppet()
    sonde = Sonde(path("ended"), "-t", "cuda", "-p", str(puppet.pid), "--delay", "1000", until="starts in")
    puppet.end()
    status = sonde.end(sig=None)
    ok(status == 0 and "nothing was recorded" in sonde.messages, "a target that ends before the start ends the wait",
       sonde.messages)
    sonde = Sonde(path("int"), "-t", "cuda", "--delay", "signal", until="SIGUSR1")
    status = sonde.end()
    verify = subprocess.run([SONDE, "info", "--verify", path("int")], stdout=subprocess.DEVNULL)
    ok(status == 0 and verify.returncode == 0, "Ctrl-C before the start: a complete trace without events", sonde.messages)
    sonde = Sonde(path("cmd"), "-t", "proc", "--delay", "signal", "--", "sleep", "60", until="SIGUSR1")
    sonde.process.send_signal(signal.SIGUSR1)
    sonde.wait_for("tracing into")
    status = sonde.end(signal.SIGTERM)
    ok(status == 128 + signal.SIGTERM, "with a command: the status is the command's", (status, sonde.messages))


by_signal()
by_time()
early_signal(signal.SIGUSR1, "--delay", "signal")
early_signal(signal.SIGUSR2, "-d", "0.2")
with_ends()
done()

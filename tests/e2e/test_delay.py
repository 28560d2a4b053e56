#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""--delay: nothing of before the start is recorded, all of after it is; -d counts from the start."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from puppet import SONDE, TMP, Puppet, Sonde, allocs, numbered
from sonde_trace import Trace
from tap import done, ok


def path(name):
    return os.path.join(TMP, name)


def every_time(trace):
    """When each event of the targets began; what began before the start says so or is a fact of that time."""
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
    # a second one has no meaning, and does no harm
    sonde.process.send_signal(signal.SIGUSR1)
    puppet.do("calls 21 10")
    status = sonde.end()
    trace = Trace(path("signal"))
    ok(status == 0 and allocs(trace) == numbered(puppet.pid, 11, 20), "signal: the calls after the start, and those alone",
       (allocs(trace), sonde.messages))
    ok(all(t >= began for t in every_time(trace)), "signal: nothing is older than the signal")
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
       "seconds: every call after the start up to the end, none before", got[:5])
    ok(min(times) >= began + 700_000_000, "seconds: nothing is older than that")
    end = [e["time"] for e in trace.events("meta_end")]
    ok(len(end) == 1 and end[0] - min(times) >= 500_000_000, "-d counts from the start")
    puppet.end()


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
    ok(status == 0 and verify.returncode == 0, "Ctrl-C before the start: a whole trace with nothing in it", sonde.messages)
    sonde = Sonde(path("cmd"), "-t", "proc", "--delay", "signal", "--", "sleep", "60", until="SIGUSR1")
    sonde.process.send_signal(signal.SIGUSR1)
    sonde.wait_for("tracing into")
    status = sonde.end(signal.SIGTERM)
    ok(status == 128 + signal.SIGTERM, "with a command: its status", (status, sonde.messages))


by_signal()
by_time()
with_ends()
done()

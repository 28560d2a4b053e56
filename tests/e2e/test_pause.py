#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""--start-paused, SIGUSR1 and SIGUSR2: calls are recorded while the recording is not paused, and reports are of that time alone."""
import json
import os
import signal
import subprocess
import time

import bounds
from puppet import SONDE, TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


PROBES = 1_000_000  # arguments from here on are of calls by which the test sees that a recording was resumed


def pause(sonde):
    """Pauses a recording. Returns when it has done so: by then the trace has a part of the pause."""
    asked = now()
    sonde.process.send_signal(signal.SIGUSR2)
    sonde.wait_trace(lambda trace: any(e["start"] >= asked for e in trace.events("meta_pause")))


def resume(sonde, puppet):
    """Resumes a recording. Returns the times before and after."""
    asked = now()
    sonde.process.send_signal(signal.SIGUSR1)

    def has_call(trace):
        puppet.do(f"calls {PROBES} 1")
        return any(e["start"] >= asked for e in trace.events("cuda_alloc"))
    sonde.wait_trace(has_call)
    return asked, now()


def times(path):
    """The start and end of a recording, and the traced time"""
    out = subprocess.run([SONDE, "report", path, "--format", "json"], capture_output=True, text=True, check=True).stdout
    return [json.loads(out)["trace"][key] for key in ("from_ns", "to_ns", "traced_ns")]


def joined(pauses):
    """The pauses, of which the trace has parts"""
    whole = []
    for begin, end in pauses:
        if whole and whole[-1][1] == begin:
            whole[-1] = whole[-1][0], end
        else:
            whole.append((begin, end))
    return whole


def check_export(path, trace, pauses):
    """Waits that the recording has although they lie in a pause are in no export, and all others are. It begins and ends paused."""
    text = subprocess.run([SONDE, "export", path, "--to", "csv", "--event", "sched_off"], capture_output=True, text=True, check=True).stdout
    recorded = [(b, a) for (_, b), (a, _) in zip(pauses, pauses[1:]) if a > b]
    waits = list(trace.events("sched_off"))
    expected = [e for e in waits if any(e["time"] >= begin and e["start"] < end for begin, end in recorded)]
    ok(len(text.splitlines()) - 1 == len(expected) > 0, "an export has what was recorded outside of pauses", len(text.splitlines()) - 1,
       len(expected), len(waits))


def by_signals():
    puppet = Puppet()
    path = os.path.join(TMP, "pauses")
    sonde = Sonde(path, "-t", "cuda,proc,sched", "-p", str(puppet.pid), "--start-paused")
    expected, least, most, resumed = [], 0, 0, []
    for first in (1, 101, 201):
        puppet.do(f"calls {first} 10")
        asked, began = resume(sonde, puppet)
        resumed.append(asked)
        puppet.do(f"calls {first + 20} 10")
        expected += numbered(puppet.pid, first + 20, 10)
        least += now() - began
        pause(sonde)
        # a second one has no effect
        sonde.process.send_signal(signal.SIGUSR2)
        most += now() - asked
    puppet.do("calls 301 10")
    status = sonde.end()
    trace = Trace(path)
    got = [call for call in allocs(trace) if call[1] < PROBES]
    ok(status == 0 and got == expected, "exactly the calls outside of pauses are recorded", got, sonde.messages)
    pauses = sorted((e["start"], e["time"]) for e in trace.events("meta_pause"))
    begin, end, traced = times(path)
    ok(traced == end - begin - sum(max(0, min(b, end) - max(a, begin)) for a, b in pauses), "the traced time is all but the pauses", traced, begin, end, pauses)
    bounds.between("which is that of the three parts", traced, least, most)
    # those that began while the recording was being paused or resumed are in the file, and in no figure: all was
    # paused from the second part of a pause on
    paused = joined([(a, b) for a, b in pauses if any(a == end for _, end in pauses)])
    inside = [c for kind in ("cuda_alloc", "sched_off", "sched_run") for c in trace.events(kind)
              if any(a < c["start"] and c["time"] < b and not any(a <= at <= c["start"] for at in resumed) for a, b in paused)]
    ok(paused and not inside, "spans of the pauses are discarded", inside[:3])
    check_export(path, trace, pauses)
    selected = subprocess.run([SONDE, "report", path, "--time", "0..100"], capture_output=True, text=True, check=True).stdout
    ok("the recording was paused for the rest" in selected, "a report of a selected time says how much of it was paused", selected[-300:])
    text = subprocess.run([SONDE, "report", path], capture_output=True, text=True, check=True).stdout
    ok("Recorded " in text and "the recording was paused for the rest" in text, "the summary says so", text[-300:])
    ok(" of " in [line for line in sonde.messages.splitlines() if " events in " in line][0].split(" lost")[0], "and so does the end of the recording",
       sonde.messages)
    puppet.end()


CONTEND = """
import threading, time
lock = threading.Lock()
def spin():
    while True:
        pass
def hold():
    while True:
        with lock:
            time.sleep(0.02)
        time.sleep(0.001)
for function in (spin, spin, hold, hold):
    threading.Thread(target=function, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


POINTS = ("gil_drop", "sample_wake")


def has_both(trace, since=0):
    return all(any(e["time"] > since for e in trace.events(kind)) for kind in POINTS)


def points():
    """Threads that hand over the GIL and a lock all the time: what has no duration is recorded outside of pauses only."""
    path = os.path.join(TMP, "points")
    with subprocess.Popen(["/usr/bin/python3", "-c", CONTEND], stdout=subprocess.PIPE, text=True) as contend:
        try:
            contend.stdout.readline()
            sonde = Sonde(path, "-t", "gil,sample", "--off-cpu", "-p", str(contend.pid))
            sonde.wait_trace(has_both)
            pause(sonde)
            resumed = now()
            sonde.process.send_signal(signal.SIGUSR1)
            sonde.wait_trace(lambda trace: has_both(trace, resumed))
            status = sonde.end()
        finally:
            contend.kill()
    trace = Trace(path)
    pauses = sorted((e["start"], e["time"]) for e in trace.events("meta_pause"))
    for kind in POINTS:
        found = [e["time"] for e in trace.events(kind)]
        # when the first part of the pause was written, it had begun for all programs
        inside = [t for t in found if pauses and pauses[0][1] < t < resumed]
        before, after = (sum(1 for t in found if t < pauses[0][0]), sum(1 for t in found if t > pauses[-1][1])) if pauses else (0, 0)
        ok(status == 0 and pauses and not inside and before and after, f"{kind}: recorded before and after a pause, and not in it",
           (len(inside), before, after), pauses, sonde.messages)


def all_paused():
    path = os.path.join(TMP, "none")
    sonde = Sonde(path, "-t", "proc", "--start-paused")
    sonde.wait_trace(lambda trace: list(trace.events("meta_pause")))
    status = sonde.end()
    verify = subprocess.run([SONDE, "info", "--verify", path], stdout=subprocess.DEVNULL)
    ok(status == 0 and verify.returncode == 0 and times(path)[2] == 0, "a recording that never resumed has no traced time", times(path))


def with_command():
    for options, expected in ((["--start-paused"], "sonde"), ([], "command")):
        path = os.path.join(TMP, expected)
        program = "import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: exit(7))\nprint('ready', flush=True)\ntime.sleep(3)\nexit(9)"
        sonde = subprocess.Popen([SONDE, "record", "-q", "-f", "-o", path, "-t", "proc", *options, "--", "/usr/bin/python3", "-c", program],
                                 stdout=subprocess.PIPE)
        sonde.stdout.readline()
        sonde.send_signal(signal.SIGUSR1)
        ok(sonde.wait(timeout=60) == (9 if options else 7), f"with a command and {options or 'no such option'}, SIGUSR1 is for {expected}")


def wrong():
    for options in (["--schedule", "wait=1"], ["--schedule", "active=0"], ["--schedule", "active=-1"], ["--schedule", "active=1,often=2"],
                    ["--schedule", "active=1", "--start-paused"], ["--schedule", "active=1", "--delay", "1"], ["--step", ""], ["--step", "*"],
                    ["--step", "a*b"], ["--step", "x" * 64]):
        run = subprocess.run([SONDE, "record", "-o", os.path.join(TMP, "wrong"), *options], capture_output=True, text=True, check=False)
        refused = run.returncode == 2 and options[0] in run.stderr and not os.path.exists(os.path.join(TMP, "wrong"))
        ok(refused, f"refused: {' '.join(options)}"[:60], run.stderr)


by_signals()
points()
all_paused()
with_command()
wrong()
done()

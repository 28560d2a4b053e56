#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 gate
"""
Garbage collections, imports and threads of each CPython, compared with the program's own log: gc.callbacks,
`-X importtime` of the same run, threading.get_native_id().
"""
import ast
import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
import tap
from sonde_trace import Trace

HERE = os.path.dirname(os.path.abspath(__file__))
IMPORT_LINE = re.compile(r"^import time:\s+(\d+) \|\s+(\d+) \| ( *)(\S+)")
OPEN = 1

# The allowed difference between the two times: the call of gc.callbacks, and the probe's trap. The USDT probe site is
# after that call: there the stack walk, about 10 us, 40 if cold, is part of the program's time but not of the recorded
# pause.
GC_SLACK_NS = 15000
GC_USDT_SLACK_NS = 60000
# The time of an outer import includes the traps of nested imports' probes and the line that each prints
IMPORT_SLACK_NS = 60000

Run = collections.namedtuple("Run", "trace printed stderr status hits")


def command(python, *args):
    """The program's command: -I would change sys.path; -S, as a root directory may lack site-packages."""
    root = [] if python.root == "/" else ["/usr/sbin/chroot", python.root]
    with open(os.path.join(HERE, "events_work.py")) as f:
        text = f.read()
    return root + [python.exe, "-X", "importtime", "-S", "-c", text] + list(args)


def record(python, switches=""):
    out = os.path.join(place, "python.sonde")
    if os.path.exists(out):
        os.unlink(out)
    # sonde can't preattach to a program in another root, and would miss its first imports: another instance already
    # runs
    known = subprocess.Popen(command(python, "wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL) if python.root != "/" else None
    if known:
        known.stdout.readline()
    p = subprocess.run([gil_lib.SONDE, "record", "-t", "python", "-o", out, "--"] + command(python), cwd="/",
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=200,
                       env=dict(os.environ, SONDE_TEST=switches, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8"))
    if known:
        known.kill()
        known.communicate()
    trace = Trace(out)
    strings = trace.strings
    numbers = {e["number"]: strings.get(e["program"]) for e in trace.events("meta_probe")}
    hits = collections.Counter()
    for e in trace.events("meta_hits"):
        # other processes run the same files and were filtered out
        hits[numbers.get(e["number"])] += e["hits"] - e["skipped"]
    return Run(trace, p.stdout, p.stderr, p.returncode, hits)


def truth_of(run):
    return ast.literal_eval(run.printed.splitlines()[-1])


def check_gc(name, run, log, usdt):
    events = sorted((e for e in run.trace.events("python_gc") if not e["flags"] & OPEN), key=lambda e: e["start"])
    first, last = log["gc"][0][1], log["gc"][-1][1]
    # collections before the callback was installed were not logged
    truth = [(a[1], b[1], b[2], b[3], b[4]) for a, b in zip(log["gc"][::2], log["gc"][1::2])]
    # a preempted thread calls its callback any time after the collection began
    between = [e for e in events if e["time"] >= first and e["start"] <= last]
    good = tap.ok(len(between) == len(truth) and len(truth) > 60, "%s: as many collections" % name,
                  "%d, truly %d" % (len(between), len(truth)))
    if not good:
        return
    wrong = [(e["generation"], t[2]) for e, t in zip(between, truth) if e["generation"] != t[2]]
    tap.ok(not wrong, "%s: of the same generations" % name, wrong[:5])
    if usdt:
        wrong = [(e["collected"], t[3], t[4]) for e, t in zip(between, truth) if e["collected"] != t[3] + t[4]]
    else:
        wrong = [(e["collected"], t[3]) for e, t in zip(between, truth)
                 if (e["collected"], e["uncollectable"]) != (t[3], t[4])]
    tap.ok(not wrong, "%s: of as many objects" % name, wrong[:5])
    # the USDT probes lie between the callbacks; others begin before the first one, and end around the second one
    ends = [(0, 0), *(t[:2] for t in truth), (1 << 63, 0)]
    wrong = [(e["start"], e["time"], t) for e, t, before, after in zip(between, truth, ends, ends[2:])
             if not (t[0] <= e["start"] <= e["time"] <= t[1] if usdt else before[1] <= e["start"] <= t[0] <= e["time"] <= after[0])]
    # a thread may lose its CPU between the two readings of the clock
    apart = statistics.median(abs(e["time"] - e["start"] - t[1] + t[0]) for e, t in zip(between, truth))
    tap.ok(not wrong and apart < (GC_USDT_SLACK_NS if usdt else GC_SLACK_NS), "%s: as long" % name, "%d ns off in the median" % apart, wrong[:3])


def check_imports(name, run, usdt):
    truth = []
    for line in run.stderr.splitlines():
        m = IMPORT_LINE.match(line)
        if m:
            truth.append((re.sub("[^ -~]", "?", m.group(4)) if not usdt else m.group(4), len(m.group(3)) // 2, int(m.group(1)) * 1000, int(m.group(2)) * 1000))
    events = sorted((e for e in run.trace.events("python_import") if not e["flags"] & OPEN), key=lambda e: e["time"])
    mine = [(e["module"], e["depth"]) for e in events]
    # a missing module is searched for, and has a line too
    good = tap.ok(len(truth) > 20 and mine == [t[:2] for t in truth], "%s: the same imports, nested alike" % name,
                  "\n".join("%s, truly %s" % p for p in zip(mine, [t[:2] for t in truth]) if p[0] != p[1])
                  or "%d, truly %d" % (len(mine), len(truth)))
    if not good:
        return
    nested = collections.Counter()
    apart = []
    for e, t in zip(events, truth):
        took = e["time"] - e["start"]
        own = took - nested.pop(e["depth"] + 1, 0)
        nested[e["depth"]] += took
        apart.append(max(abs(took - t[3]) - 0.01 * t[3], abs(own - t[2]) - 0.01 * t[2]))
    apart.sort()
    # an import that is preempted between the probe and the interpreter's clock reading differs by a time slice
    tap.ok(apart[len(apart) // 2] < IMPORT_SLACK_NS, "%s: as long, self and cumulative" % name, apart)
    # 20,000 imports of loaded modules must not hit a probe
    searches = run.hits["python_import_start"] + run.hits["python_import_audit"]
    tap.ok(searches == len(truth), "%s: no probe hit for a module that is there" % name,
           "%d hits, %d searches" % (searches, len(truth)))


def check_threads(name, run, log):
    events = list(run.trace.events("python_thread_run"))
    main = next(iter(run.trace.events("python_import")))["tid"]
    tap.ok(sorted(e["tid"] for e in events) == sorted(log["threads"]) and all(e["starter"] == main for e in events)
           and all(e["time"] - e["start"] >= 10000000 for e in events), "%s: its threads, from start to end" % name,
           [dict(e) for e in events])


def check_python(python, switches=""):
    usdt = b"import__find__load__start" in open(python.binary, "rb").read() and not switches
    name = "%s%s" % (python.name, " by USDT" if usdt else "")
    run = record(python, switches)
    complaints = [line for line in run.stderr.splitlines() if "not traced" in line and not line.startswith("sonde: cost:")]
    tap.ok(run.status == 0 and not complaints, "%s: recorded" % name, complaints)
    log = truth_of(run)
    check_gc(name, run, log, usdt)
    check_imports(name, run, usdt)
    check_threads(name, run, log)
    lost = [e for e in run.trace.events("meta_loss") if e["family"] == 0x0b and e["reason"] != 8]
    tap.ok(not lost, "%s: nothing lost" % name, lost)


def semaphore(binary, name):
    """The address of a probe's semaphore in a non-relocated program, or None"""
    notes = subprocess.run(["readelf", "-nW", binary], stdout=subprocess.PIPE, universal_newlines=True).stdout
    m = re.search(r"Name: %s\s.*?Semaphore: 0x([0-9a-f]+)" % name, notes, re.S)
    return int(m.group(1), 16) if m else None


def counter(pid, address):
    with open("/proc/%d/mem" % pid, "rb") as f:
        f.seek(address)
        return int.from_bytes(f.read(2), "little")


def check_running():
    """Attaches to a running program: its semaphores are raised and lowered; spans that were open before are not reported."""
    found = gil_lib.pythons()[0].get("3.11 debian")
    address = semaphore(found.binary, "gc__start") if found else None
    if address is None:
        return tap.skip("a running program", "no CPython with USDT probes")
    out = os.path.join(place, "running.sonde")
    work = subprocess.Popen(command(found, "wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, universal_newlines=True)
    work.stdout.readline()
    before = counter(work.pid, address)
    sonde = subprocess.Popen([gil_lib.SONDE, "record", "-t", "python", "-o", out, "-p", str(work.pid)],
                             stderr=subprocess.PIPE, universal_newlines=True)
    sonde.stderr.readline()
    during = counter(work.pid, address)
    # a second sonde attaches and detaches, and removes only its own probes
    subprocess.run([gil_lib.SONDE, "record", "-t", "python", "-o", out + "2", "-p", str(work.pid), "-d", "0.1"],
                   stderr=subprocess.DEVNULL)
    still = counter(work.pid, address)
    sonde.terminate()
    sonde.communicate(timeout=60)
    after = counter(work.pid, address)
    tap.ok((before, during, still, after) == (0, 1, 1, 0), "a running program: its semaphores are raised and lowered",
           (before, during, still, after))
    sonde = subprocess.Popen([gil_lib.SONDE, "record", "-f", "-t", "python", "-o", out, "-p", str(work.pid)],
                             stderr=subprocess.PIPE, universal_newlines=True)
    sonde.stderr.readline()
    printed = work.communicate("\n", timeout=60)[0]
    sonde.communicate(timeout=60)
    log, trace = ast.literal_eval(printed.splitlines()[-1]), Trace(out)
    collections_ = [e for e in trace.events("python_gc") if e["time"] > log["gc"][0][1] - 1000000]
    tap.ok(len(collections_) >= len(log["gc"]) // 2 and list(trace.events("python_import")),
           "a running program: it is traced from then on", len(collections_))


def check_unknown():
    """A stripped Python without USDT probes can't be probed: this is reported, and everything else is traced."""
    found = gil_lib.pythons()[0].get("3.11 debian")
    if not found:
        return tap.skip("a stripped Python without USDT probes", "no Debian Python")
    run = record(found, "no-usdt")
    text = "imports and garbage collections are not traced: it has no USDT probes, it has no symbols"
    tap.ok(text in run.stderr and list(run.trace.events("python_thread_run")),
           "a stripped Python without USDT probes is reported", run.stderr[-1000:])


place = tempfile.mkdtemp(prefix="sonde-python-")
try:
    gil_lib.each_python("events", check_python)
    check_running()
    check_unknown()
finally:
    shutil.rmtree(place, ignore_errors=True)
tap.done()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Records walk_work.py under `sonde record --gil=stacks` and reads the stacks of its waits."""
import bisect
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "gil"))
from gil_lib import SONDE, each_python, pythons  # noqa: F401
from sonde_trace import Trace

FRAMES, OUTER = 256, 64  # STACK_FRAMES, STACK_OUTER
ENTRIES = 8  # most frames of the interpreter itself among the outermost ones
PYTHON, CUT = 1, 4  # enum frame_kind
RING_FULL, STORAGE, MAP_FULL, READ, TORN, UNKNOWN = 1, 2, 6, 9, 11, 14  # enum loss_reason
OF_STACKS = (RING_FULL, STORAGE, MAP_FULL, READ, TORN, UNKNOWN)
Run = collections.namedtuple("Run", "waits marks losses messages status printed")


class Stacks:
    """The frame tree of a trace"""

    def __init__(self, trace):
        strings = {e["string"]: e["text"] for e in trace.events("meta_string")}
        strings[0] = ""
        self.codes = {e["code"]: (strings[e["name"]], strings[e["file"]]) for e in trace.events("meta_code")}
        self.frames = {e["frame"]: e for e in trace.events("meta_frame")}

    def of(self, number):
        """([[name, file, line], ...] from the innermost frame, how many frames lie inside the cut or None)"""
        out, cut = [], None
        while number:
            f = self.frames[number]
            number = f["caller"]
            if f["kind"] == CUT:
                cut = len(out)
            else:
                name, file = self.codes.get(f["code"], ("", ""))
                out.append([name, file, f["line"]])
        return out, cut


STARTER = """
import subprocess, sys, time
print("ready", flush=True)
sys.stdin.readline()
log, work, seconds, pythons = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
end, n = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for p in pythons:
        subprocess.run([p, "-S", work, log, "short", "0"], timeout=30)
        n += 1
print(n, "started")
"""


def start_many(place, seconds, exes):
    """Starts a program that runs interpreters, one after the other."""
    shutil.copy(os.path.join(HERE, "walk_work.py"), place)
    command = [sys.executable, "-c", STARTER, place + "/log", place + "/walk_work.py", str(seconds)] + exes
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"})
    p.stdout.readline()
    return p, place


def start_work(python, place, what, seconds):
    d = tempfile.mkdtemp(prefix="sonde-walk-", dir=place if python.root == "/" else python.root + "/tmp")
    os.chmod(d, 0o755)
    shutil.copy(os.path.join(HERE, "walk_work.py"), d)
    inside = d if python.root == "/" else d[len(python.root):]
    command = [python.exe, "-S", inside + "/walk_work.py", inside + "/log", what, str(seconds)]
    if python.root != "/":
        command = ["/usr/sbin/chroot", python.root] + command
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         cwd="/", env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"})
    if p.stdout.readline().strip() != "ready":
        p.kill()
        raise RuntimeError("%s: walk_work.py did not start" % python.name)
    return p, d


def record(python, what, seconds=3, options=(), switches=""):
    place = tempfile.mkdtemp(prefix="sonde-walk-")
    work = sonde = d = None
    try:
        work, d = start_many(place, seconds, python) if what == "many" else start_work(python, place, what, seconds)
        out = os.path.join(place, "walk.sonde")
        sonde = subprocess.Popen([SONDE, "record", "-t", "gil", "--gil=stacks", "-o", out, "-p", str(work.pid), "-d", "150", *options],
                                 stderr=subprocess.PIPE, text=True, env=dict(os.environ, SONDE_TEST=switches))
        said = []
        for line in sonde.stderr:
            said.append(line)
            if "tracing into" in line:
                break
        printed = work.communicate("\n", timeout=120)[0]
        said.append(sonde.communicate(timeout=90)[1])
        with open(os.path.join(d, "log")) as f:
            marks = [json.loads(line) for line in f]
        trace = Trace(out)
        stacks = Stacks(trace)
        waits = [dict(w, frames=stacks.of(w["stack"])) for w in trace.events("gil_wait")]
        losses = collections.Counter()
        for e in trace.events("meta_loss"):
            losses[e["reason"]] += e["count"]
        return Run(waits, marks, losses, "".join(said), sonde.returncode, printed)
    finally:
        for p in (work, sonde):
            if p and p.poll() is None:
                p.send_signal(signal.SIGKILL)
                p.wait()
        shutil.rmtree(place, ignore_errors=True)
        if d:
            shutil.rmtree(d, ignore_errors=True)


def after_first(run, ns):
    """The run without waits in the first ns of a function that churn made."""
    begun = {}
    for m in run.marks:
        if m["kind"] == "churn":
            begun.setdefault(str(m["stack"]), m["a"])
    begun = sorted(begun.values())
    return run._replace(waits=[w for w in run.waits if w["start"] - begun[max(0, bisect.bisect_right(begun, w["start"]) - 1)] > ns])


def counted(run):
    """The number of missing stacks that the recording reports"""
    return sum(run.losses[reason] for reason in OF_STACKS)


def expected(stack, n):
    """The stack that sonde should show for one logged by Python, where it shows n frames"""
    stack, inner = [list(frame) for frame in stack], FRAMES - OUTER - 1
    outer = n - inner
    if OUTER - ENTRIES <= outer <= OUTER and len(stack) > FRAMES:
        return stack[:inner] + stack[-outer:], inner
    return stack, None


Compared = collections.namedtuple("Compared", "marks seen waits unwalked wrong")


def compare(run):
    """Compares each mark with the waits that began in it."""
    by_tid = collections.defaultdict(list)
    for m in run.marks:
        by_tid[m["tid"]].append((m["a"], m["b"], m))
    for list_ in by_tid.values():
        list_.sort(key=lambda x: x[0])
    seen, waits, unwalked, wrong = set(), 0, 0, []
    for w in run.waits:
        marks = by_tid[w["tid"]]
        i = bisect.bisect_right([m[0] for m in marks], w["start"]) - 1 if marks else -1
        if i < 0 or w["start"] > marks[i][1]:
            continue
        waits += 1
        if not w["stack"]:
            unwalked += 1
            continue
        seen.add((w["tid"], marks[i][0]))
        want = expected(marks[i][2]["stack"], len(w["frames"][0]))
        if w["frames"] != want:
            wrong.append((marks[i][2]["kind"], difference(w["frames"], want)))
    return Compared(len(run.marks), len(seen), waits, unwalked, wrong)


def difference(got, want):
    if len(got[0]) != len(want[0]) or got[1] != want[1]:
        return f"{len(got[0])} frames, cut {got[1]}, truly {len(want[0])}, {want[1]}; innermost {got[0][:3]}"
    for i, (g, w) in enumerate(zip(got[0], want[0])):
        if g != w:
            return "frame %d is %s, truly %s" % (i, str(g)[:200], str(w)[:200])
    return "equal"

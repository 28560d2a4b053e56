# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the GIL's tests: all CPythons, their helpers, a recording together with the log of a preloaded library (the truth)."""
import bisect
import collections
import contextlib
import functools
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sysconfig
import tempfile

import tap
from recording import PROBE_NS
from sonde_cli import Sonde

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SONDE = os.environ.get("SONDE", os.path.join(TOP, "build", "test", "sonde"))

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
# How many times slower than a usual machine this one may be
SLOW = int(os.environ.get("SLOW", 1))
REQUIRED = ["3.11 debian", "3.14 sid", "3.15 sid"]


# For programs in which few threads run at once: busy programs on the same machine take no CPU from them
REALTIME = ["/usr/bin/chrt", "--rr", "1"]

# root: the process's root directory; binary: this test's path of the file with the runtime
Python = collections.namedtuple("Python", "name exe root binary")


def _pyenv_root():
    return os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")


def _runtime_of(exe):
    """The file with the runtime: libpython if it is shared, else the program."""
    lib = glob.glob(os.path.join(os.path.dirname(os.path.dirname(exe)), "lib", "libpython3.*.so.1.0"))
    return lib[0] if lib and "/usr/bin/" not in exe else os.path.realpath(exe)


@functools.lru_cache(maxsize=None)
def sid_root():
    """The root directory made by tests/env/sid-root.sh, or "" if that failed"""
    p = subprocess.run([os.path.join(TOP, "tests", "env", "sid-root.sh")], stdout=subprocess.PIPE, timeout=300,
                       universal_newlines=True)
    return p.stdout.strip() if p.returncode == 0 else ""


@functools.lru_cache(maxsize=None)
def pythons():
    """({name: Python}, {name: why it is missing}) of all versions"""
    found, missing = {}, {}
    for v in VERSIONS[:6]:
        exe = sorted(glob.glob(os.path.join(_pyenv_root(), "versions", v + ".*", "bin", "python" + v)))
        name = v + " pyenv"
        if exe:
            found[name] = Python(name, exe[-1], "/", _runtime_of(exe[-1]))
        else:
            missing[name] = "pyenv has no %s" % v
    for v in VERSIONS:
        exe = "/usr/bin/python" + v
        if os.path.exists(exe):
            name = v + " debian"
            found[name] = Python(name, exe, "/", os.path.realpath(exe))
    root = "" if os.environ.get("GIL_PYTHON", "sid").find("sid") < 0 else sid_root()
    for v in ["3.14", "3.15"]:
        name = v + " sid"
        if root and os.path.exists(root + "/usr/bin/python" + v):
            found[name] = Python(name, "/usr/bin/python" + v, root, os.path.realpath(root + "/usr/bin/python" + v))
        else:
            missing[name] = "tests/env/sid-root.sh made none"
    for name in REQUIRED:
        if name not in found:
            missing.setdefault(name, "not installed")
    return found, missing


def each_python(what, fn):
    """Calls fn(python) for each CPython. Missing ones are skipped, or fail if they are required. GIL_PYTHON="3.11 debian" selects some."""
    found, missing = pythons()
    if os.environ.get("GIL_PYTHON"):
        found, missing = {n: p for n, p in found.items() if n == os.environ["GIL_PYTHON"]}, {}
    for name in sorted(set(found) | set(missing), key=lambda n: (len(n.split(".")[1].split()[0]), n)):
        if name in found:
            fn(found[name])
        elif name in REQUIRED:
            tap.ok(False, "%s, %s" % (what, name), missing[name])
        else:
            tap.skip("%s, %s" % (what, name), missing[name])


@contextlib.contextmanager
def script(python, path):
    """The command that runs a script by this CPython, in whose root it is copied"""
    if python.root == "/":
        yield [python.exe, path]
        return
    with tempfile.TemporaryDirectory(prefix="sonde-script-", dir=python.root + "/tmp") as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(path, folder)
        # -S, as this root has no site-packages
        yield ["/usr/sbin/chroot", python.root, python.exe, "-S", copy[len(python.root):]]


class Workplace:
    """A directory with the helpers, also in other roots. It is removed at the end."""

    def __enter__(self):
        self.dirs = {}
        self.here = tempfile.mkdtemp(prefix="sonde-gil-")
        includes = "-I" + sysconfig.get_paths()["include"]
        if not os.path.exists(includes[2:] + "/Python.h"):
            includes = "-I/usr/include/python3.11"
        for src in ["gil_truth", "gil_hold", "gil_plant"]:
            built = os.path.join(os.environ.get("B", ""), "tests/probes/gil/built", src + ".so")
            if os.path.exists(built):
                shutil.copy(built, self.here)
                continue
            subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", includes,
                            os.path.join(HERE, "built", src + ".c"), "-o", os.path.join(self.here, src + ".so"), "-ldl"],
                           check=True, timeout=60)
        for script in ["gil_work.py", "gil_planted.py"]:
            shutil.copy(os.path.join(HERE, script), self.here)
        os.chmod(self.here, 0o755)
        return self

    def __exit__(self, *args):
        for d in list(self.dirs.values()) + [self.here]:
            shutil.rmtree(d, ignore_errors=True)

    def inside(self, root):
        """(the helpers' directory, its path for a process in root)"""
        if root == "/":
            return self.here, self.here
        if root not in self.dirs:
            d = tempfile.mkdtemp(prefix="sonde-gil-", dir=root + "/tmp")
            os.chmod(d, 0o755)
            for f in os.listdir(self.here):
                shutil.copy(os.path.join(self.here, f), d)
            self.dirs[root] = d
        return self.dirs[root], self.dirs[root][len(root):]


# full: the events of --gil=full; live: the time of the first probes (the workload waits until all are attached)
Recording = collections.namedtuple("Recording", "waits drops truth_waits truth_drops holds losses status messages "
                                   "full truth_switches live")


def _start_workload(python, place, kind, seconds, threads, truth):
    outside, inside = place.inside(python.root)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": inside, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    # by env, so that chroot itself does not get it
    preload = ["/usr/bin/env", "LD_PRELOAD=%s/gil_truth.so" % inside, "GIL_TRUTH=%s/truth.json" % inside]
    # -I would ignore PYTHONPATH; -S, as the sid root has no site-packages
    command = (preload if truth else []) + [python.exe, "-S", inside + "/gil_work.py", kind, str(seconds), str(threads)]
    if python.root != "/":
        command = ["/usr/sbin/chroot", python.root] + command
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, env=env,
                         cwd="/")
    if p.stdout.readline().split()[:1] != ["ready"]:
        p.kill()
        raise RuntimeError("%s: the workload did not start" % python.name)
    return p, os.path.join(outside, "truth.json")


def start_work(place, python, kind, seconds, threads):
    """Starts gil_work.py, without the truth library. It begins its work at a line on stdin."""
    p = subprocess.Popen([*REALTIME, python.exe, "-S", place.here + "/gil_work.py", kind, str(seconds), str(threads)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                         env={"PATH": "/usr/bin:/bin", "PYTHONPATH": place.here, "LC_ALL": "C.UTF-8"})
    p.stdout.readline()
    return p


def record(python, place, kind, seconds, threads, switches="", truth=True, options=(), on_live=None, families="gil", read=None):
    """Records gil_work.py, which runs with the truth library. Calls on_live() before the workload begins, and read(path, trace) at the end."""
    from sonde_trace import Trace
    work, truth_file = _start_workload(python, place, kind, seconds, threads, truth)
    out = os.path.join(place.here, "gil.sonde")
    sonde = None
    try:
        sonde = Sonde(out, "-t", families, *options, "-p", str(work.pid), "-d", str(SLOW * (seconds + 30)), mode=switches)
        if on_live:
            on_live()
        printed = work.communicate("\n", timeout=SLOW * (seconds + 30))[0]
        sonde.end(None)
    finally:
        for p in (work, sonde and sonde.process):
            if p and p.poll() is None:
                p.send_signal(signal.SIGKILL)
                p.wait()
    holds = [tuple(map(int, line.split()[1:])) for line in printed.splitlines() if line.startswith("hold ")]
    waits, drops, truth_switches = [], [], []
    if truth:
        with open(truth_file) as f:
            for line in f:
                r = json.loads(line)
                {"wait": waits, "drop": drops, "switch": truth_switches}[list(r)[0]].append(list(r.values())[0])
        os.unlink(truth_file)
    trace = Trace(out)
    # reason 8, attach gap: another process mapped a Python meanwhile
    losses = [e for e in trace.events("meta_loss") if e["family"] == 4 and e["reason"] != 8]
    result = Recording(list(trace.events("gil_wait")), list(trace.events("gil_drop")), waits, drops, holds,
                       losses, sonde.process.returncode, sonde.messages,
                       {kind: list(trace.events(kind)) for kind in ("gil_hold", "gil_switch")}, truth_switches,
                       min([e["live"] for e in trace.events("meta_object") if e["live"]] or [0]))
    if read:
        read(out, trace)
    os.unlink(out)
    return result


SWITCH_COND = 88  # offset from a GIL's condition


def true_holds(signals, gils):
    """{gil: [(tid, taken or None, dropped or None)]} from [tid, time, cond]. All are logged under gil->mutex, so that they are ordered."""
    steps = collections.defaultdict(list)
    for tid, time, cond in signals:
        gil = cond if cond in gils else cond - SWITCH_COND
        steps[gil].append((time, tid, cond == gil))
    holds = collections.defaultdict(list)
    for gil, list_ in steps.items():
        taken = None
        for time, tid, drop in sorted(list_):
            if drop:
                holds[gil].append((tid, taken[1] if taken and taken[0] == tid else None, time))
                taken = None
            else:
                taken = (tid, time)
        if taken:
            holds[gil].append((*taken, None))
    return holds


def preloaded_holds(path, tid):
    """[(taken, dropped)] of a thread, in a process with one GIL, from the truth"""
    with open(path) as f:
        records = [json.loads(line) for line in f]
    gil = next(r["wait"][3] for r in records if "wait" in r)
    holds = true_holds([r["drop"] for r in records if "drop" in r], {gil})[gil]
    return [(a, b) for t, a, b in holds if t == tid and a and b]


def by_thread(waits):
    """{tid: [(start, end)]}, sorted, from (tid, start, end)"""
    threads = collections.defaultdict(list)
    for tid, start, end in sorted(waits):
        threads[tid].append((start, end))
    return threads


def outside_bracket(mine, truth):
    """
    The intervals of sonde, (start, end), that are not around those of the preloaded library with the same number, or reach into the one
    before or after it. sonde's probes are where the interpreter calls the function, the library's readings within the call.
    """
    return [(m, t) for i, (m, t) in enumerate(zip(mine, truth))
            if not (truth[i - 1][1] if i else 0) <= m[0] <= t[0] <= t[1] <= m[1] <= (truth[i + 1][0] if i + 1 < len(truth) else 1 << 63)]


def compare_counts(r, within_ns=None):
    """
    Faults of sonde's waits: each thread must have the number of waits in the truth, and each wait must be around the true one, and
    typically be longer by no more than the probes take: a thread may lose its CPU between two readings of the clock.
    within_ns: the waits must instead lie within the true ones, and sonde's programs run for so long in them; a thread that has slept
    also takes some time to reach the end of libc's function, less than 1% of the wait.
    """
    wrong, extra, bad, n = [], [], [], len(r.truth_waits)
    mine = by_thread((w["tid"], w["start"], w["time"]) for w in r.waits)
    truth = by_thread(w[:3] for w in r.truth_waits)
    for tid in sorted(set(mine) | set(truth)):
        a, b = mine.get(tid, []), truth.get(tid, [])
        if len(a) != len(b):
            wrong.append("thread %d: %d waits, truly %d" % (tid, len(a), len(b)))
            continue
        bad += outside_bracket(a, b) if within_ns is None else [(x, y) for x, y in zip(a, b) if x[0] < y[0] or x[1] > y[1]]
        extra += [abs(x[1] - x[0] - y[1] + y[0]) - (0 if within_ns is None else (y[1] - y[0]) // 100) for x, y in zip(a, b)]
    if bad:
        wrong.append("%d of %d waits are not where the true ones are: %s" % (len(bad), n, bad[:3]))
    if extra and statistics.median(extra) > PROBES_NS + (within_ns or 0) / n:
        wrong.append("half of the waits differ by more than %d ns" % statistics.median(extra))
    if wrong and len(r.waits) != n:
        wrong.append("counted %d of %d" % (len(r.waits), n)) # see tests/vm/steps.py
    return wrong


SIGNAL, TIMEOUT = 1, 2  # enum gil_wait_end
OPEN = 1  # enum event_flags
# a wait is longer by this: the traps and programs of its two probes
PROBES_NS = 5 * PROBE_NS


Attribution = collections.namedtuple("Attribution", "right earlier wrong unseen examples")


def attribution(r):
    """
    Of the waits that a signal ended, the number with each kind of dropper: the thread of the last
    drop before their end; an `earlier` dropper, after which another thread had the GIL and
    dropped it; a wrong thread; none.
    """
    by_gil = collections.defaultdict(list)
    for tid, time, cond in r.truth_drops:
        by_gil[cond].append((time, tid))
    for drops in by_gil.values():
        drops.sort()
    right = earlier = wrong = unseen = 0
    examples = []
    for w in r.waits:
        if w["result"] != SIGNAL:
            continue
        drops = by_gil[w["gil"]]
        i = bisect.bisect_right(drops, (w["time"], 1 << 40)) - 1
        last = drops[i][1] if i >= 0 else 0
        before = i
        while w["locked"] and before >= 0 and drops[before][1] == last and drops[before][0] >= w["start"]:
            before -= 1
        if not w["dropper"]:
            unseen += 1
        elif w["dropper"] == last:
            right += 1
        elif before >= 0 and w["dropper"] == drops[before][1] and w["holder"] in (0, last):
            earlier += 1
        else:
            wrong += 1
            examples.append((dict(w), drops[max(0, i - 3):i + 3]))
    return Attribution(right, earlier, wrong, unseen, examples)


def add(a, b):
    return Attribution(*[x + y for x, y in zip(a, b)])


def figures(a):
    n = max(sum(a[:4]), 1)
    return "of %d waits that a signal ended %.2f%% name the last dropper, %.2f%% the last before the holder took it " \
        "again, %.2f%% a wrong thread, %.2f%% none" % ((sum(a[:4]),) + tuple(100 * x / n for x in a[:4]))


def good(a):
    """True if the attribution is as good as it must be for threads that compute"""
    n = sum(a[:4])
    return n and a.right + a.earlier >= n - max(2, 0.05 * n) and a.wrong < 0.02 * n

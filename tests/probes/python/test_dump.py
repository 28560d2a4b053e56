#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits gate
"""
Compares `sonde dump` with faulthandler for parked threads of each CPython. Also: the GIL, a thread that runs constantly, 200
threads, and processes that it can't inspect.
"""
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
import proc_files
import tap
from waiting import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class Work:
    """dump_work.py in a CPython, for the time of a with block"""

    def __init__(self, python, kind, before=()):
        self.dir = tempfile.mkdtemp(prefix="sonde-dump-", dir=os.path.join(python.root, "tmp"))
        os.chmod(self.dir, 0o755)
        inside = self.dir[len(python.root):] if python.root != "/" else self.dir
        shutil.copy(os.path.join(HERE, "dump_work.py"), self.dir)
        self.truth, self.began = os.path.join(self.dir, "truth"), time.monotonic_ns()
        root = [] if python.root == "/" else ["/usr/sbin/chroot", python.root]
        self.p = subprocess.Popen(
            list(before) + root + [python.exe, "-S", inside + "/dump_work.py", kind, inside + "/truth"], stdout=subprocess.PIPE, cwd="/",
            universal_newlines=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8", PYTHONUTF8="1"))

    def __enter__(self):
        line = self.p.stdout.readline().split(" ", 1)
        self.pid, self.native = int(line[0]), dict(ast.literal_eval(line[1]))
        self.host_pid = self.p.pid  # the pid in this test's namespace
        if self.pid != self.p.pid:
            with open("/proc/%d/task/%d/children" % (self.p.pid, self.p.pid)) as f:
                self.host_pid = int(f.read().split()[0])
        return self

    def settle(self, tids=()):
        """Waits until these or all threads have slept for a while, as on a busy machine a thread may take long to park."""
        before, end = None, time.monotonic() + 60
        while time.monotonic() < end:
            threads = {tid: proc_files.status(self.host_pid, tid) for tid in tids or proc_files.threads(self.host_pid)}
            now = {tid: (s["State"][0], s["voluntary_ctxt_switches"], s["nonvoluntary_ctxt_switches"]) for tid, s in threads.items() if s}
            if now == before and all(state == "S" for state, *_ in now.values()):
                return
            before = now
            time.sleep(0.15)

    def __exit__(self, *args):
        self.p.kill()
        self.p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def dump(*args, **kw):
    return subprocess.run([gil_lib.SONDE, "dump"] + [str(a) for a in args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=60, **kw)


def dump_json(*pids):
    p = dump(*pids, "--format", "json")
    if p.returncode:
        raise RuntimeError(p.stderr)
    tables = json.loads(p.stdout)["tables"]
    stacks = {t["tid"]: [] for t in tables["threads"] if t["stack"] == "whole"}
    for f in tables["frames"]:
        stacks[f["tid"]].append((f["file"], f["line"] or 0, f["function"].rsplit(".", 1)[-1]))
    return tables, stacks


def read_truth(work):
    """faulthandler's stacks by native thread id, once it has written them and all threads are parked again."""
    work.settle()
    os.kill(work.host_pid, signal.SIGUSR1)
    def is_written():
        with open(work.truth, encoding="utf-8", errors="backslashreplace") as f:
            return f.read().count("most recent call first") >= len(work.native)
    wait_for(is_written, 60)
    work.settle()
    with open(work.truth, encoding="ascii", errors="backslashreplace") as f:
        text = f.read()
    stacks, frames = {}, None
    for line in text.splitlines():
        m = re.match(r"^(?:Current t|T)hread 0x([0-9a-f]+)", line)
        if m:
            frames = stacks.setdefault(work.native.get(int(m.group(1), 16), 0), [])
        m = FRAME.match(line)
        if m:
            frames.append((m.group(1), int(m.group(2)), m.group(3).rsplit(".", 1)[-1]))
    return stacks


def ascii_of(stack):
    """The stack as faulthandler writes it, with non-ASCII characters escaped"""
    return [(f.encode("ascii", "backslashreplace").decode(), line, n.encode("ascii", "backslashreplace").decode())
            for f, line, n in stack]


def check_parked(python):
    with Work(python, "parked") as work:
        truth = read_truth(work)
        try:
            tables, stacks = dump_json(work.pid)
        except RuntimeError as e:
            tap.ok(False, "parked threads, %s" % python.name, str(e))
            return
    wrong = ["%d:\n  %s\ntruly\n  %s" % (tid, ascii_of(stacks.get(tid, [])), truth[tid])
             for tid in truth if ascii_of(stacks.get(tid, [])) != truth[tid]]
    tap.ok(len(truth) == 6 and sorted(truth) == sorted(stacks) and not wrong, "parked threads, %s: as faulthandler"
           % python.name, "\n".join(wrong) or "%s %s" % (sorted(truth), sorted(stacks)))
    states, lived = {t["tid"]: t for t in tables["threads"]}, time.monotonic_ns() - work.began
    asleep = [t for t in states.values() if t["tid"] in truth]
    tap.ok(asleep and all(t["state"] == "asleep" and t["syscall"] and t["gil"] is None and
               (t["sleep_ns"] is None or 0 < t["sleep_ns"] < lived) for t in asleep),
           "parked threads, %s: asleep since some time, no part in the GIL" % python.name, asleep)
    tap.ok(tables["interpreters"][0]["gil"] and tables["interpreters"][0]["holder_tid"] is None,
           "parked threads, %s: no thread holds the GIL" % python.name, tables["interpreters"])


def check_gil(python):
    """Two threads compute: one holds the GIL, the other waits for it."""
    holders, waiters, bad = set(), set(), []
    with Work(python, "spin") as work:
        spinners = set(work.native.values()) - {work.p.pid}
        # until it has started the others, the main thread waits for the GIL too
        work.settle([work.host_pid])
        for i in range(60):
            # on a busy machine a thread may be off the CPU for long
            if i >= 12 and holders and waiters:
                break
            tables, stacks = dump_json(work.pid)
            roles = {t["tid"]: t["gil"] for t in tables["threads"]}
            holders |= {t for t in roles if roles[t] == "holds"}
            waiters |= {t for t in roles if roles[t] == "waits"}
            if list(roles.values()).count("holds") > 1:
                bad.append(roles)
    tap.ok(holders and holders <= spinners and waiters and waiters <= spinners and not bad,
           "two that compute, %s: one holds the GIL, the other waits for it" % python.name,
           "%s %s %s %s" % (spinners, holders, waiters, bad))


def check_fast(python):
    """A stack that changes constantly (ping calls pong calls ping) is printed completely or not at all."""
    whole = torn = 0
    wrong = []
    with Work(python, "fast") as work:
        runner = (set(work.native.values()) - {work.p.pid}).pop()
        for _ in range(20):
            tables, stacks = dump_json(work.pid)
            if runner not in stacks:
                torn += 1
                continue
            whole += 1
            names = [f[2] for f in stacks[runner]][::-1]
            at = names.index("run_fast") if "run_fast" in names else -1
            turns = names[at + 1:]
            if at < 0 or turns != ["ping", "pong"] * (len(turns) // 2) + ["ping"] * (len(turns) % 2):
                wrong.append(names)
    tap.note("%s, a thread that calls all the time: %d whole, %d torn" % (python.name, whole, torn))
    tap.ok(not wrong and whole + torn == 20, "a thread that calls all the time, %s: whole or reported as torn" % python.name, wrong[:3])


def check_many(python):
    with Work(python, "many") as work:
        work.settle()
        start = time.monotonic()
        p = dump(work.pid)
        took = time.monotonic() - start
        tables, stacks = dump_json(work.pid)
    tap.note("%s: 200 threads dumped in %.0f ms, start of the program and printing included" % (python.name, 1000 * took))
    good = [s for s in stacks.values() if [f[2] for f in s][3:6] == ["<listcomp>", "sell", "run"]
            or [f[2] for f in s][3:5] == ["sell", "run"]]
    # threads with equal stacks are listed below one of them
    shown = p.stdout.count("Shop.sell (") + p.stdout.count("    sell (")
    for line in re.findall("    the same: (.*)", p.stdout):
        more = re.search(r" and (\d+) more$", line)
        shown += line.count(", ") + 1 + int(more.group(1) if more else 0)
    tap.ok(p.returncode == 0 and shown >= 200 and
           len(good) == 200, "200 threads: all have complete stacks", "%d %d %s" % (shown, len(good), list(stacks.values())[:1]))


def check_errors(python):
    with Work(python, "parked") as work, subprocess.Popen(["sleep", "100"]) as sleep:
        work.settle()
        p = dump(sleep.pid)
        tap.ok(p.returncode == 1 and "does not run CPython" in p.stderr and not p.stdout, "a program that is not Python",
               "%d %s" % (p.returncode, p.stderr))
        p = dump(work.pid, sleep.pid)
        tap.ok(p.returncode == 3 and "does not run CPython" in p.stderr and "Shop.sell" in p.stdout,
               "one of two processes can't be dumped: status 3", "%d %s" % (p.returncode, p.stderr))
        p = dump(work.pid, work.pid, "--format", "csv")
        tap.ok(p.returncode == 0 and p.stdout.count("CPython") == 0 and "frames" in p.stdout, "CSV output", p.stdout[:300])
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        p = subprocess.run(unprivileged + [gil_lib.SONDE, "dump", str(work.pid)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True)
        if "execut" in p.stderr or p.returncode == 126:
            tap.skip("another user's process", "other users can't execute this build")
        else:
            tap.ok(p.returncode == 1 and "is left out by --scope user" in p.stderr and "sudo sonde dump" in p.stderr,
                   "another user's process: refused with advice", "%d %s" % (p.returncode, p.stderr))
        sleep.kill()
        sleep.wait()
        p = dump(sleep.pid)
        tap.ok(p.returncode == 1 and "there is no process" in p.stderr, "a process that has ended", p.stderr)
    for args, what in (([], "which process"), (["0"], "needs process ids"), (["x"], "needs process ids"),
                       (["1", "--wrong"], "unknown option"), (["1", "--format", "xml"], "no format")):
        p = dump(*args)
        tap.ok(p.returncode == 2 and what in p.stderr, "dump %s: wrong usage" % " ".join(args), p.stderr)


def check_interpreters(python):
    """Interpreters have Python's ids, the main one 0. Their list is in another order and has gaps."""
    with Work(python, "interpreters") as work:
        truth = work.native
        if not truth:
            tap.skip("interpreters, %s" % python.name, "this Python has no module for interpreters")
            return
        work.settle()
        tables, _ = dump_json(work.pid)
    numbers = sorted(i["interpreter"] for i in tables["interpreters"])
    seen = {(t["tid"], t["interpreter"]) for t in tables["threads"]}
    tap.ok(numbers == sorted(set(truth.values())) and set(truth.items()) <= seen,
           "interpreters, %s: numbered as Python does" % python.name, "%s %s truly %s" % (numbers, sorted(seen), truth))


def check_container(python):
    """In a pid namespace a thread's own tid differs from the one outside."""
    with Work(python, "parked", ["unshare", "--pid", "--fork", "--kill-child"]) as work:
        truth = read_truth(work)
        pid = work.host_pid
        tids = sorted(int(t) for t in os.listdir("/proc/%d/task" % pid))
        try:
            tables, stacks = dump_json(pid)
        except RuntimeError as e:
            tap.ok(False, "in a pid namespace, %s" % python.name, str(e))
            return
    tap.ok(work.pid == 1 and len(truth) == 6 and sorted(map(ascii_of, stacks.values())) == sorted(truth.values()) and
           sorted(t["tid"] for t in tables["threads"]) == tids and set(stacks) <= set(tids),
           "in a pid namespace, %s: the stacks, by the machine's numbers" % python.name,
           "%s %s\ntruly\n%s" % (tids, stacks, truth))


def check_own(python):
    """An unprivileged user dumps their own processes."""
    run = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    # not in the test's own directory, which other users can't enter
    shown = tempfile.mkdtemp(prefix="sonde-dump-", dir="/tmp")
    os.chmod(shown, 0o755)
    shutil.copy(gil_lib.SONDE, shown)
    try:
        # the shell's child has the same user, and sonde as an ancestor, if Yama requires one
        # until the program sleeps, which takes long on a busy machine
        script = ("%s -c 'import time; time.sleep(60)' & p=$!; for _ in $(seq 40); do sleep 0.5; out=$(%s/sonde dump $p); s=$?; "
                  "case $out in *'<string>:1'*) break;; esac; done; printf '%%s\\n' \"$out\"; kill $p; exit $s" % (python.exe, shown))
        p = subprocess.run(run + ["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           universal_newlines=True)
        with open("/proc/sys/kernel/yama/ptrace_scope") as f:
            yama = f.read().strip()
    except OSError:
        yama = "0"
    shutil.rmtree(shown, ignore_errors=True)
    if yama != "0":
        tap.skip("one's own process, without root", "kernel.yama.ptrace_scope is %s" % yama)
    else:
        tap.ok(p.returncode == 0 and "<module> (<string>:1)" in p.stdout, "one's own process, without root",
               "%d %s %s" % (p.returncode, p.stdout, p.stderr))


gil_lib.each_python("parked threads", check_parked)
gil_lib.each_python("interpreters", check_interpreters)
for name in "3.8 pyenv", "3.11 debian", "3.13 pyenv":
    if gil_lib.pythons()[0].get(name):
        check_container(gil_lib.pythons()[0][name])
    else:
        tap.skip("in a pid namespace, %s" % name, "not installed")
for name in "3.8 pyenv", "3.11 debian", "3.13 pyenv":
    found = gil_lib.pythons()[0].get(name)
    if found:
        check_gil(found)
        check_fast(found)
    else:
        tap.skip("the GIL, %s" % name, "not installed")
debian = gil_lib.pythons()[0].get("3.11 debian")
if debian:
    check_many(debian)
    check_errors(debian)
    check_own(debian)
else:
    tap.skip("200 threads, errors", "no Debian Python")
tap.done()

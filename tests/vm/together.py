#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs several live tests unchanged with one shared recording of all families and the whole machine.

A test's `sonde` is tests/vm/joined.py, which waits here. A round begins when each test that still runs waits for a recording, and
ends when each of them has had what it asked for; a test that makes three recordings takes part in three rounds.
"""
import glob
import os
import re
import signal
import subprocess
import tempfile
import time

ROOT, SONDE = os.environ["ROOT"], os.environ["SONDE"]
# options of families that otherwise record only processes with a runtime, which these programs lack
EVERY_PROCESS = ("sched", "syscall", "disk", "net", "lock", "sample")
TRACING, ENDING = 300, 300  # seconds


def exists(pid):
    """True if a process still runs and is not a zombie"""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# of every trace; and one that records what other options name
NOT_BY_NAME = ("core", "functions")


def families():
    text = subprocess.run([SONDE, "list", "families"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"^(\w+) +0x", text, re.M)


class Sonde:
    """The recording of one round."""

    def __init__(self, path, options):
        self.path = path
        self.command = [SONDE, "record", "-f", "-t", ",".join(f for f in families() if f not in NOT_BY_NAME), "-F", "49", "--off-cpu",
                        *[f"--{f}=all" for f in EVERY_PROCESS], *options, "-o", path]
        self.log = open(path + ".log", "w+")
        self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=self.log)
        until = time.monotonic() + TRACING
        while "tracing into" not in self.said() and self.child.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        self.began = "tracing into" in self.said() and self.child.poll() is None

    def said(self):
        with open(self.path + ".log", errors="replace") as f:
            return f.read()

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        try:
            return self.child.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return -9


class Test:
    def __init__(self, path, env, args):
        self.name, self.cut = path, False
        self.out = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen([os.path.join(ROOT, "tests", path), *args], stdin=subprocess.DEVNULL, stdout=self.out,
                                      stderr=subprocess.STDOUT, env=env, start_new_session=True)

    def runs(self):
        return self.child.poll() is None

    def output(self):
        with open(f"/proc/self/fd/{self.out.fileno()}", errors="replace") as f:  # with a position of its own
            return f.read()


class Together:
    def __init__(self, tests, environment, rounds):
        self.dir, self.rounds, self.sondes = tempfile.mkdtemp(prefix="together-"), rounds, []
        env = dict(os.environ, **environment, SONDE_REAL=SONDE, JOINED=self.dir, SONDE=os.path.join(ROOT, "tests/vm/joined.py"))
        self.tests = [Test(path, env, args) for path, *args in tests]

    def those(self, what):
        return {path.rsplit(".", 1)[1]: path for path in glob.glob(os.path.join(self.dir, what + ".[0-9]*"))
                if not path.endswith(".new")}

    def send(self, what, pid, text):
        path = os.path.join(self.dir, f"{what}.{pid}")
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def gather(self):
        """{pid: options} of the requested recordings, once every running test waits for one"""
        while True:
            waiting = {pid: path for pid, path in self.those("ready").items() if exists(pid)}
            running = sum(t.runs() for t in self.tests)
            if not running:
                return {}
            if len(waiting) >= running:  # more, where a test has ended before what it started
                break
            time.sleep(0.1)
        options = {}
        for pid, path in waiting.items():
            with open(path) as f:
                options[pid] = f.read().split()
            os.unlink(path)
        return options

    def round(self, options):
        every = sorted({o for own in options.values() for o in own if not o.endswith("=all") or o == "--cuda=all"})
        sonde = Sonde(os.path.join(self.dir, f"trace-{len(self.sondes) + 1}"), every)
        self.sondes.append(sonde)
        for pid in options if sonde.began else ():
            self.send("go", pid, sonde.path)
        while sonde.began and any(map(exists, set(options) - set(self.those("done")))) and any(t.runs() for t in self.tests):
            time.sleep(0.1)
        sonde.status = sonde.stop()
        for pid in options:
            if not sonde.began and exists(pid):
                os.kill(int(pid), signal.SIGKILL)
            self.send("end", pid, f"{sonde.status}\n{sonde.said()}")
        return sonde.began

    def describe(self):
        """Lines with the output of each test and recording"""
        lines = []
        for t in self.tests:
            state = "runs" if t.runs() else f"ended, {t.child.returncode}"
            lines += [f"{t.name} ({state}) has printed:", *t.output().splitlines()[-5:]]
        for sonde in self.sondes:
            lines += [f"{sonde.path} has printed:", *sonde.said().splitlines()[-5:]]
        return lines + [f"they wait in: {' '.join(sorted(os.listdir(self.dir)))}"]

    def run(self):
        while True:
            options = self.gather()
            if not options:
                break
            if len(self.sondes) == self.rounds:
                self.cut(options)
                break
            if not self.round(options):
                break
        for t in self.tests:
            try:
                t.child.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(t.child.pid, signal.SIGKILL)

    def cut(self, options):
        """Ends the tests that still run; their output so far counts."""
        for t in self.tests:
            t.cut = t.runs()
            if t.cut:
                os.killpg(t.child.pid, signal.SIGKILL)

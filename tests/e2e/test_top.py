#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 gate
"""
`sonde top` of a program with a planted contention for the GIL: the plain lines, the screen in a pseudo terminal, which it must
restore, and invalid command lines.
"""
import os
import pty
import re
import select
import subprocess
import tempfile
import termios
import time

import bounds
import proc_files
from tap import done, ok

SONDE = os.environ["SONDE"]

FIGHT = """
import sys, threading, time

def hog():
    while True:
        sum(range(200000))
def victim():
    while True:
        time.sleep(0.0005)
def reads():
    while True:
        for i in range(1000):
            pass
threads = {"fight": [hog, victim], "alone": [hog]}[sys.argv[1]]
for t in threads:
    threading.Thread(target=t, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


def run_ns(pid):
    """The time on a CPU of each thread, from the oldest to the newest"""
    return [int(proc_files.read(f"/proc/{pid}/task/{tid}/schedstat").split()[0]) for tid in proc_files.threads(pid)]


def start(kind):
    p = subprocess.Popen(["/usr/bin/python3", script, kind], stdout=subprocess.PIPE, universal_newlines=True)
    p.stdout.readline()
    return p


def top(*args):
    return subprocess.run([SONDE, "top"] + [str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, universal_newlines=True, timeout=60)


def blocks(text):
    """[{"gil": [words..], "blame": .., "cpu": ..}], one per interval, which an end line ends"""
    out, now = [], {}
    for line in text.splitlines():
        word = line.split(" ", 1)[0]
        if word == "end":
            out.append(now)
            now = {}
        elif word in ("finding", "gil", "blame", "cpu"):
            now.setdefault(word, []).append(line.split(" ", 1)[1])
        else:
            now["head"] = line
    return out


def check_fight():
    with start("fight") as work:
        before = run_ns(work.pid)
        p = top(work.pid, "--count", 3, "--interval", "2", "-F", 999)
        _, hog, victim = (ns - was for ns, was in zip(run_ns(work.pid), before))
        work.kill()
    got = blocks(p.stdout)
    ok(p.returncode == 0 and len(got) == 3 and all(re.match(r"\d\d:\d\d:\d\d \d+\.\d\d s", b["head"]) for b in got),
       "--count is the number of intervals, which have their time", p.stdout + p.stderr)
    # the first interval may lack names
    last = got[-1] if got else {}
    gil = last.get("gil", [""])[0].split()
    ok(gil[:2] == [str(work.pid), "0"] and float(gil[2].rstrip("%")) > 0 and int(gil[3]) > 0 and gil[5] in ("1", "2")
       and gil[6].startswith("python3"), "the contended GIL is shown with a waiter", p.stdout)
    finding = last.get("finding", [""])[0]
    share = re.match(rf"fight.py {work.pid} waited (\d+)% of \d+\.\d+ m?s for the GIL in victim \(fight.py:\d+\).*; "
                     r"(?:mostly )?held by hog \(fight.py:\d+\)", finding)
    ok(share, "the first line is the first finding: who waited, in which code, because of whom", p.stdout)
    # both the share and the length of the interval are rounded; the other thread waited too little to count
    length = float(last["head"].split()[1])
    waited = sum(int(line.split()[3]) for line in last.get("blame", []) if line.endswith("-> victim (fight.py)")) / 1e7
    bounds.between("and its share is that of the figures below", int(share[1]) if share else -1, waited / (length + 0.005) - 0.5,
                   waited / (length - 0.005) + 0.5)
    first = p.stdout.splitlines()
    ok(all(re.match(r"\d\d:\d\d:\d\d ", first[i - 1]) for i, line in enumerate(first) if line.startswith("finding ")),
       "it comes before all other lines of an interval", p.stdout)
    blame = last.get("blame", [""])[0]
    ok("hog (fight.py) -> victim (fight.py)" in blame, "the holder and the waiter that cost most are shown", p.stdout)
    cpu = last.get("cpu", [""])[0]
    ok(cpu.endswith(" hog (fight.py)"), "the function that uses the CPU time is shown", p.stdout)
    percent, ns = float(cpu.split("%")[0]), int(cpu.split()[2])
    bounds.share("with its share", percent / 100, hog / (hog + victim), round(ns * 999 / 1e7 / percent), systematic=0.01,
                 why="its share is not the same in each interval")


def check_alone():
    with start("alone") as work:
        p = top(work.pid, "--count", 2, "--interval", "0.4", "-F", 0)
        work.kill()
    got = blocks(p.stdout)
    ok(p.returncode == 0 and len(got) == 2 and not any("gil" in b or "blame" in b or "cpu" in b or "finding" in b for b in got),
       "an idle program has no waiters, and -F 0 takes no samples", p.stdout + p.stderr)


def check_computes():
    """
    The finding of a program without waits. Its share is not judged: an interval counts the samples that were read in it, some of
    which were taken before.
    """
    with start("alone") as work:
        p = top(work.pid, "--count", 1, "--interval", "3", "-F", 1999)
        work.kill()
    finding = blocks(p.stdout)[-1].get("finding", [""])[0]
    share = re.match(rf"fight.py {work.pid} ran on a CPU (\d+)% of (\d+\.\d+) s in hog \(fight.py:\d+\); 100% of its CPU time ", finding)
    ok(share, "without waits it is the process that computes, and its function", p.stdout)


def check_end():
    with start("alone") as work:
        sonde = subprocess.Popen([SONDE, "top", str(work.pid), "--plain", "--interval", "0.2"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, universal_newlines=True)
        for line in sonde.stdout:
            if line.startswith("end"):
                break
        work.kill()
        work.wait()
        out = sonde.communicate(timeout=60)
    ok(sonde.returncode == 0, "top ends when its processes have ended", out)


class Screen:
    """sonde in a pseudo terminal of 40 lines and 120 columns."""

    def __init__(self, *args):
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120)) if hasattr(termios, "tcsetwinsize") else None
        self.slave, self.before, self.seen = slave, termios.tcgetattr(slave), ""
        self.p = subprocess.Popen([SONDE, "top"] + [str(a) for a in args], stdin=slave, stdout=slave,
                                  stderr=subprocess.PIPE, env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))

    def until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
            elif self.p.poll() is not None:
                break
        return text in self.seen

    def key(self, key):
        self.seen = ""
        os.write(self.master, key.encode())

    def restored(self):
        return termios.tcgetattr(self.slave)[:4] == self.before[:4]

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()
        os.close(self.master)
        os.close(self.slave)


def check_screen():
    with start("fight") as work:
        s = Screen(work.pid, "--interval", "0.3")
        shown = ["LOAD%", "waited ", " for the GIL in victim", "hog (fight.py) -> victim (fight.py)", "FUNCTION"]
        s.until("LOAD%")
        for _ in range(60):
            # top draws only changes; Ctrl-L redraws everything
            s.key("\x0c")
            if all(s.until(text, 1) for text in shown):
                break
        ok(all(text in s.seen for text in shown), "the screen shows the GIL, the holder and the function", repr(s.seen))
        ok(not s.restored(), "top switches the terminal to its own screen")
        s.key("?")
        ok(s.until("sort functions by self time"), "? shows the help", repr(s.seen))
        s.key("?")
        s.until("LOAD%")
        s.key("s")
        ok(s.until("*"), "s sorts by the other column", repr(s.seen))
        s.key("p")
        ok(s.until("PAUSED"), "p pauses", repr(s.seen))
        s.key("q")
        gone = s.until("\x1b[?1049l")
        try:
            s.p.wait(60)
        except subprocess.TimeoutExpired:
            pass
        ok(s.p.returncode == 0 and gone and s.restored(), "q quits and restores the terminal",
           "%s %s %r" % (s.p.returncode, gone, s.seen))
        s.close()
        s = Screen(work.pid)
        s.until("LOAD%")
        s.p.terminate()
        gone = s.until("\x1b[?1049l")
        s.p.wait(60)
        ok(s.p.returncode == 0 and gone and s.restored(), "SIGTERM restores the terminal", "%s %s" % (s.p.returncode, gone))
        s.close()
        work.kill()


def check_first():
    """The screen shows figures long before the first interval ends, with the time they cover, and --count does not count them."""
    with start("fight") as work:
        s = Screen(work.pid, "--interval", 3600, "--count", 1)
        ok(s.until("tracing; the first figures come"), "the screen is never empty", repr(s.seen))
        ok(s.until("FUNCTION"), "the first figures are shown before the first interval ends", repr(s.seen))
        s.key("\x0c")
        s.until(" s, lost ")
        head = re.search(r"sonde top  (\d+\.\d\d) s, lost ", s.seen)
        ok(head and 0 < float(head.group(1)) < 3600, "the first figures have the time that they cover", repr(s.seen))
        ok(s.p.poll() is None, "--count does not count them")
        s.key("q")
        s.until("\x1b[?1049l")
        s.close()
        work.kill()


def check_usage():
    for args, what in ((["x"], "needs process ids"), (["--count", "0"], "--count needs"), (["--interval", "no"], "--interval needs"),
                       (["-F", "x"], "-F needs"), (["--wrong"], "unknown option"), (["-F"], "needs a value")):
        p = top(*args)
        ok(p.returncode == 2 and what in p.stderr and not p.stdout, "top %s: wrong usage" % " ".join(args), p.stderr)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    p = top(gone.pid, "--count", 1)
    ok(p.returncode == 1 and "nothing to trace" in p.stderr and not p.stdout, "a process that has ended",
       "%d %s" % (p.returncode, p.stderr))


with tempfile.TemporaryDirectory(prefix="sonde-top-") as place:
    script = os.path.join(place, "fight.py")
    with open(script, "w") as f:
        f.write(FIGHT)
    os.chmod(place, 0o755)
    check_fight()
    check_alone()
    check_computes()
    check_end()
    check_screen()
    check_first()
    check_usage()
done()

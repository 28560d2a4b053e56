#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The progress that `sonde record` shows, `record --report` and `sonde why`."""
import fcntl
import glob
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

import proc_files
from recording import workdir
from tap import done, ok, skip, skip_all
from waiting import state, wait_for

SONDE = os.environ["SONDE"]
TRACE = os.path.join(workdir(), "t.sonde")
WORK = """
import time
print("ready", flush=True)
while True:
    sum(range(20000))
    time.sleep(0.005)
"""
FORK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
pid_t fork(void)
{
	static int done;
	int first = !done++;
	pid_t pid = ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
	if (pid > 0 && first)
		raise(SIGTERM);
	return pid;
}
"""

if os.geteuid():
    skip_all("tracing needs root")


def on_terminal(*argv, columns=80):
    """The output on a terminal, including lines that were replaced"""
    pid, fd = pty.fork()
    if not pid:
        os.execv(SONDE, [SONDE, *argv])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    text = b""
    try:
        while data := os.read(fd, 4096):
            text += data
    except OSError:
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode()


def run(*argv):
    r = subprocess.run([SONDE, *argv], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def start(*argv, until="tracing into"):
    """Starts sonde in a process group of its own, and reads its stderr up to this line."""
    p = subprocess.Popen([SONDE, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while until and (line := p.stderr.readline()) and until not in line:
        pass
    return p


def catches(process, sig):
    """True if the process has a handler for this signal"""
    with open(f"/proc/{process}/status", encoding="utf-8") as f:
        return int(re.search(r"SigCgt:\s*(\w+)", f.read())[1], 16) >> (sig - 1) & 1


def child_of(process):
    return proc_files.children(process)[0]


target = subprocess.Popen(["/usr/bin/python3", "-S", "-c", WORK], stdout=subprocess.PIPE, text=True)
target.stdout.readline()
pid = str(target.pid)
code, text = on_terminal("record", "-t", "lean", "-d", "1.9", "-p", pid, "-f", "-o", TRACE)
lines = [line for line in text.split("\r") if line.startswith("\x1b[K")]
order = [next((i for i, line in enumerate(lines) if re.search(word, line)), -1)
         for word in ("loading programs", "scanning ", "probing ", "tracing [12] s")]
ok(not code and -1 not in order and order == sorted(order), "on a terminal, each step of the start and each second has a line", lines)
ok(re.search(r"scanning [1-9]\d* processes", text), "these lines have the number of processes", lines)
took = re.search(r" events in ([\d.]+) s", text)
ok(lines and lines[-1].startswith("\x1b[K") and "tracing" not in text[text.rfind("\x1b[K"):] and took and float(took[1]) >= 1.9,
   "no such line is left at the end", lines[-2:])

def check_live_finding():
    """
    The line of each second has what cost most time in it. Its share is not compared: on a busy machine the program also
    waits for a CPU.
    """
    with subprocess.Popen(["/usr/bin/python3", "-S", "-c", "def burn():\n    while True:\n        sum(range(20000))\nburn()"]) as busy:
        status, shown = on_terminal("record", "-d", "3.3", "-p", str(busy.pid), "-f", "-o", TRACE, columns=200)
        busy.kill()
    finding = rf"python3 {busy.pid} (?:ran on|needed) a CPU .* in burn \(<string>:\d+\); (\d+)% of its CPU time"
    said = re.findall(rf"tracing [1-9] s: \d+ events, [\d.]+ MB, \d+ lost; {finding}", shown)
    ok(not status and "100" in said, "on a wide terminal the line of a second names what cost most time", shown)


check_live_finding()
code, text = on_terminal("record", "-q", "-t", "lean", "-d", "0.2", "-p", pid, "-f", "-o", TRACE)
ok(not code and not text, "--quiet: no output", text)
code, out, err = run("record", "-t", "lean", "-d", "0.2", "-p", pid, "-f", "-o", TRACE)
ok(not code and "\r" not in err and "scanning" not in err, "in a file: no such lines", err)

code, out, err = run("record", "--report", "-t", "lean", "-d", "0.3", "-p", pid, "-f", "-o", TRACE)
shown = run("report", TRACE)[1]
ok(not code and " events in " in err and out == shown and "Processes" in out, "--report: the summary follows", f"{code}\n{err}\n{out}")
end = re.search(r"sonde: \S+: (\d+) events in ([\d.]+ m?s), ([\d.]+) KB; (\d+) lost", err)
figures = json.loads(run("info", TRACE, "--format", "json")[1])
traced = re.search(r"process(?:es)? w(?:as|ere) traced for ([\d.]+ m?s)", out)
ok(end and traced and end[2] == traced[1] and figures["trace"]["traced_ns"] and int(end[1]) == figures["trace"]["events"] and
   float(end[3]) == round(os.path.getsize(TRACE) / 1e3, 1), "the line at the end has the figures of the report, of info and of the file",
   f"{end and end[0]}\n{out[:300]}\n{figures}"[:1500])
code, out, err = run("record", "--report", "-d", "0.2", "-o", "/dev/stdout")
ok(code == 2 and "/dev/stdout" in err, "--report and a trace on standard output: wrong usage", err)
code, out, err = run("record", "--report", "-t", "lean", "-f", "-o", TRACE, "--", "sh", "-c", "exit 7")
ok(code == 7 and "Processes" in out, "--report of a command: its exit status", f"{code}\n{err}\n{out}")
code, out, err = run("record", "--report", "-d", "0.2", "-p", "99999999", "-f", "-o", TRACE + ".none")
ok(code == 1 and not out and "no such process" in err, "--report: no report if nothing could be recorded", f"{code}\n{err}\n{out}")
code, out, err = run("record", "--rep", "-q", "-t", "proc", "-d", "0.3", "-p", pid, "-f", "-o", TRACE)
ok(not code and "Processes" in out, "--rep is an abbreviation of --report", f"{code}\n{err}\n{out}")
code, out, err = run("record", "--report", "-t", "proc", "-f", "-o", TRACE, "--", "sh", "-c", "kill -INT $$")
ok(code == 130 and "Processes" in out, "--report of a command that was ended by a signal", f"{code}\n{err}\n{out}")
code, out, err = run("record", "--report", "-t", "proc", "-f", "-o", TRACE + ".none", "--", "/nonexistent")
ok(code == 127 and not out and "/nonexistent" in err and TRACE not in err, "no report of a command that could not be run", f"{code}\n{err}\n{out}")


def check_replaced():
    """The report is of the file that was recorded, even if another user puts another trace at its path."""
    other, moved, folder = TRACE + ".other", TRACE + ".moved", os.path.join(workdir(), "why")
    run("record", "-q", "-t", "proc", "-f", "-o", other, "--", "sh", "-c", "exec -a other-program sleep 0.1")
    code, out, err = run("record", "--report", "-t", "proc", "-f", "-o", TRACE, "--",
                         "sh", "-c", f"mv {TRACE} {moved}; cp {other} {TRACE}; exec sleep 0.1")
    ok(not code and f"sonde: {TRACE}: " in err and out.replace(moved, TRACE) == run("report", moved)[1].replace(moved, TRACE)
       and out != run("report", TRACE)[1], "--report of a trace that was replaced at its path: of the recorded file", f"{code}\n{err}\n{out}")
    os.mkdir(folder)
    os.environ["TMPDIR"] = folder
    p = start("why", "-d", "60", pid, until=None)
    del os.environ["TMPDIR"]
    wait_for(lambda: [t for t in glob.glob(os.path.join(folder, "*/*")) if os.path.getsize(t)])
    trace = glob.glob(os.path.join(folder, "*/*"))[0]
    os.rename(trace, moved)
    shutil.copy(other, trace)
    p.terminate()
    out, err = p.communicate()
    ok(p.returncode in (0, 3) and re.search(rf"^ *{pid}  python3 ", out, re.M), "why, whose trace was replaced: of the recorded file",
       f"{p.returncode}\n{err}\n{out}")


check_replaced()
os.chdir(workdir())
code, out, err = run("record", "--report", "-t", "proc", "-d", "0.2", "--comm", "nothing-a,python3*", "-p", pid, "-f", "-o", "-x.sonde")
ok(not code and "Processes" in out, "--report of a file whose name begins with a dash", f"{code}\n{err}\n{out}")
shown = run("info", "./-x.sonde")[1]
ok("nothing-a" in shown and "python3*" in shown, "--report with several names", shown)

for arguments in (("--delay", "0.1", "-d", "0.2"), ("-d", "0.1", "--", "sleep", "0.4")):
    code, out, err = run("record", "-q", "-t", "proc", "-f", "-o", TRACE, *(() if "--" in arguments else ("-p", pid)), *arguments)
    ok(not code and not out and not err, f"--quiet with {arguments[0]}: no output", f"{code}\n{err}")
p = start("record", "-q", "-t", "proc", "--delay", "signal", "-p", pid, "-f", "-o", TRACE, until=None)
wait_for(lambda: catches(p.pid, signal.SIGUSR1))
p.terminate()
out, err = p.communicate()
ok("SIGUSR1" not in err, "--quiet with --delay signal: no output about the delay", err)

# systemd and timeout signal the whole group, so that the recording gets the signal twice
p = start("record", "--report", "-t", "proc", "-p", pid, "-f", "-o", TRACE)
os.killpg(p.pid, signal.SIGTERM)
out, err = p.communicate()
ok(not p.returncode and "Processes" in out, "--report, a signal to the group: the recording ends and is reported", f"{p.returncode}\n{err}\n{out}")
p = start("record", "--report", "-t", "proc", "-p", pid, "-f", "-o", TRACE)
p.terminate()
out, err = p.communicate()
ok(not p.returncode and "Processes" in out, "--report, a signal to the process: the same", f"{p.returncode}\n{err}\n{out}")
p = start("record", "--report", "-t", "proc", "-p", pid, "-f", "-o", TRACE)
recorder = child_of(p.pid)
p.kill()
if not ok(wait_for(lambda: state(recorder) in (None, "Z", "X")), "a recording ends after its parent was killed", recorder):
    os.kill(recorder, signal.SIGKILL)
p.communicate()

# sends the parent the signal that ends the recording immediately after the fork
NAME = "a signal that comes with the fork is not lost"
with open(SONDE, "rb") as f:
    sanitized = b"__asan_init" in f.read()
if not shutil.which("cc") or sanitized:
    skip(NAME, "no C compiler is installed, or the program is a sanitized one, into which no library can be preloaded")
else:
    library = os.path.join(workdir(), "fork.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=FORK, text=True, check=True)
    r = subprocess.run([SONDE, "record", "--report", "-t", "proc", "-d", "20", "-p", pid, "-f", "-o", TRACE], capture_output=True, check=False, timeout=100,
                       env={**os.environ, "LD_PRELOAD": library})
    ok(r.returncode == 128 + signal.SIGTERM, NAME, f"{r.returncode} {r.stderr}")

folders = set(glob.glob("/tmp/sonde-why-*"))
os.environ["TMPDIR"] = workdir()
code, out, err = run("why", "-d", "0.5", pid)
# status 3: libraries of other processes could not be probed
ok(code in (0, 3) and "python3" in out and pid in out and "Processes" in out, "why PID: its summary", f"{code}\n{err}\n{out}")
ok("tracing into" not in err and " events in " not in err, "why PID: no output of the recording", err)
code, out, err = run("why", "-d", "0.3", "--format", "json", pid)
ok(code in (0, 3) and out.startswith("{"), "why --format json", f"{code}\n{err}\n{out[:100]}")
p = start("why", "-d", "60", pid, until=None)
wait_for(lambda: [t for t in glob.glob(os.path.join(workdir(), "sonde-why-*/*")) if os.path.getsize(t)])
os.killpg(p.pid, signal.SIGTERM)
out, err = p.communicate()
ok(p.returncode in (0, 3) and "Processes" in out, "why, a signal to the group: the report of what was recorded until then", f"{p.returncode}\n{err}\n{out}")
code, out, err = run("why", "99999999")
ok(code == 1 and "no such process" in err and not out, "why of a process that does not exist", f"{code}\n{err}")
for words in ([], ["abc"], ["-d", "x", pid], ["--format", "xml", pid]):
    code, out, err = run("why", *words)
    ok(code == 2 and err and not out, f"why {' '.join(words)}: wrong usage", f"{code}\n{err}")
ok(set(glob.glob("/tmp/sonde-why-*")) == folders and not glob.glob(os.path.join(workdir(), "sonde-why-*")), "its temporary trace file is removed")
target.kill()
target.wait()
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A FUSE file system whose server does not answer: other processes are traced completely, and sonde ends on a signal."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
import proc_files
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import state, wait_for

SERVER = os.path.join(B, "tests", "workloads", "hung_files")
LIBRARY = os.path.join(B, "tests", "fakes", "libcudart.so")
CALLS = 500
CALLER = f"""import ctypes, sys
library, p = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print(library, flush=True)
sys.stdin.readline()
for _ in range({CALLS}):
    library.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(100))"""
PATIENCE = int(os.environ.get('PATIENCE', 60))  # far longer than a loaded machine needs; a hang never ends


class Server:
    """A FUSE file system with one file, and a process that maps it"""

    def __init__(self, folder, source, name, *more):
        self.folder = os.path.join(TMP, folder)
        self.path = os.path.join(self.folder, name)
        os.mkdir(self.folder)
        self.p = subprocess.Popen([SERVER, self.folder, source, name, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        line = self.p.stdout.readline().split()
        self.victim = int(line[1]) if line else 0

    def command(self, what):
        self.p.stdin.write(what + "\n")
        self.p.stdin.flush()
        self.p.stdout.readline()

    def close(self):
        self.p.stdin.close()
        self.p.wait()


class Recording:
    def __init__(self, name, *args, env=None):
        self.path = os.path.join(TMP, name)
        self.err, self.started = "", threading.Event()
        self.sonde = subprocess.Popen([SONDE, "record", "-o", self.path, *args], stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, **(env or {})})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.sonde.stderr:
            self.err += line
            if "tracing into" in line:
                self.started.set()

    def runs(self):
        return self.started.wait(PATIENCE)

    def end(self, sig=signal.SIGINT):
        """The seconds from the signal to the end, or None if it did not end"""
        at = time.monotonic()
        self.sonde.send_signal(sig)
        try:
            self.sonde.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        # a helper that is blocked may keep the pipe open
        wait_for(lambda: " events in " in self.err or not self.reader.is_alive())
        return time.monotonic() - at


def calls(trace, pid):
    return sum(e["pid"] == pid for e in trace.events("cuda_alloc"))


class Beside:
    """A process that mapped the library before sonde started, and calls it on request"""

    def __init__(self, library):
        self.p = subprocess.Popen([sys.executable, "-c", CALLER, library], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.p.stdout.readline()

    def run(self):
        self.p.communicate("\n")
        return self.p.pid


def give_up(r, server, other, name):
    """Reports that sonde hangs, and ends the server, which unblocks sonde so that no process is left."""
    ok(False, name, r.err)
    server.close()
    other.run()
    r.end(signal.SIGKILL)


def named_and_left_alone(library):
    server = Server("left", library, "libcudart.so.13")
    server.command("hang")
    other = Beside(library)
    r = Recording("left.sonde", "-t", "cuda")
    if not r.runs():
        give_up(r, server, other, "a recording begins beside a file whose server does not answer")
        return
    pid = other.run()
    took = r.end()
    lines = [line for line in r.err.splitlines() if server.path in line]
    server.close()
    ok(took is not None, "a recording beside a file whose server does not answer ends", r.err)
    ok(len(lines) == 1 and "FUSE" in lines[0] and "--remote-files" in lines[0],
       "one message has the file, why it was not examined and how to allow it", r.err)
    ok(len(lines) == 1 and f"mapped by hung_files {server.victim}." in lines[0] and
       f"sonde record --remote-files -o {r.path} -t cuda` examines" in lines[0],
       "it has the process that maps the file and the command that examines it", r.err)
    if took is None:
        return
    got = calls(Trace(r.path), pid)
    ok(got == CALLS, "each call of another process is recorded with default options", got)


def other_commands(library):
    """Other commands that inspect processes don't open the file and don't wait for its server either."""
    server = Server("others", library, "libcudart.so.13")
    server.command("hang")
    pid = str(server.victim)
    try:
        for words, text in ((["doctor"], "Mapped files on FUSE or the like"), (["dump", pid], "some lie on FUSE"),
                            (["list", "probes", "--resolve", pid], "left out: 1 file on FUSE")):
            done = subprocess.run([SONDE, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
            said = done.stdout + done.stderr
            ok(text in said and "--remote-files" in said, f"{words[0]} leaves such a file out and says so", said[-1500:])
    except subprocess.TimeoutExpired as e:
        ok(False, "other commands do not wait for such a file", e)
    finally:
        server.close()


def mapped_later(library):
    """The file is mapped while sonde records."""
    other = Beside(library)
    r = Recording("later.sonde", "-t", "cuda")
    if not r.runs():
        ok(False, "the recording begins", r.err)
        other.run()
        r.end(signal.SIGKILL)
        return
    server = Server("later", library, "libcudart.so.13")
    server.command("hang")
    wait_for(lambda: server.path in r.err)
    pid = other.run()
    took = r.end()
    server.close()
    got = took is not None and calls(Trace(r.path), pid)
    ok(server.path in r.err and got == CALLS,
       "a file that is mapped while sonde records is left out and named", took, got, r.err)


def allowed(library):
    server = Server("allowed", library, "libcudart.so.13")
    r = Recording("allowed.sonde", "-t", "cuda", "--remote-files")
    begun = r.runs()
    took = r.end()
    server.close()
    if took is None:
        ok(False, "with --remote-files such a file is probed", r.err)
        return
    trace = Trace(r.path)
    strings = {e["string"]: e["text"] for e in trace.events("meta_string")}
    probed = [strings[o["path"]] for o in trace.events("meta_object") if o["sites"]]
    ok(begun and server.path in probed, "with --remote-files such a file is probed", probed, r.err)


def helper_given_up(library):
    """With --remote-files a helper opens the file, and blocks in the kernel until the server answers."""
    server = Server("stuck", library, "libcudart.so.13")
    server.command("hang")
    other = Beside(library)
    r = Recording("stuck.sonde", "-t", "cuda", "--remote-files")
    if not r.runs():
        give_up(r, server, other, "a file that does not answer is given up")
        return
    pid = other.run()
    took = r.end()
    stuck = states("sonde-opener")
    server.close()
    ok(took is not None and "D" in stuck, "sonde ends while its helper is blocked in the kernel", took, stuck, r.err)
    print(f"# {took} s from Ctrl-C to the end")
    ok(server.path + ": not examined: its file system did not answer" in r.err, "the file is named", r.err)
    if took is not None:
        got = calls(Trace(r.path), pid)
        ok(got == CALLS, "each call of another process is recorded", got, r.err)


def at_the_start(library):
    """SIGTERM before tracing runs, while a helper waits for the file."""
    server = Server("start", library, "libcudart.so.13")
    server.command("hang")
    r = Recording("start.sonde", "-t", "cuda", "--remote-files")
    wait_for(lambda: "D" in states("sonde-opener"))
    took = r.end(signal.SIGTERM)
    server.close()
    whole = took is not None and Trace(r.path).events("meta_end")
    ok(whole, "SIGTERM while sonde starts ends it with a complete trace", took, r.err)
    print(f"# {took} s from SIGTERM to the end")


def locked(library):
    """A process that waits for the file while it holds its mmap lock, which the kernel needs to list its mappings."""
    server = Server("locked", os.path.realpath(sys.executable), "plugin.so", "locks")
    other = Beside(library)
    server.command("hang")
    wait_for(lambda: any(state(server.victim, tid) == "D" for tid in proc_files.threads(server.victim)))
    r = Recording("locked.sonde", "-t", "proc,cuda")
    if not r.runs():
        give_up(r, server, other, "a process whose mappings can't be listed does not keep a recording from beginning")
        return
    pid = other.run()
    took = r.end()
    server.close()
    ok(took is not None and f"process {server.victim}: not examined" in r.err,
       "a process whose mappings can't be listed is named", took, r.err)
    print(f"# {took} s from Ctrl-C to the end")
    if took is not None:
        got = calls(Trace(r.path), pid)
        ok(got == CALLS, "each call of another process is recorded", got, r.err)


def states(comm):
    """The states of all processes of this name."""
    found = ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, rest = f.read().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(" + comm):
            found += rest.split()[0]
    return found


def main():
    if os.geteuid() or not os.path.exists("/dev/fuse"):
        skip("hung files", "needs root and /dev/fuse")
        done()
    library = os.path.join(TMP, "libcudart.so.13")
    shutil.copy(LIBRARY, library)
    named_and_left_alone(library)
    other_commands(library)
    mapped_later(library)
    allowed(library)
    helper_given_up(library)
    at_the_start(library)
    locked(library)


main()
done()

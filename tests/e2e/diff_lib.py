# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs whose truth is known, recorded, and what `sonde diff` and `sonde report FILE why` say of them."""
import json
import os
import subprocess
import sys
import tempfile

from sonde_cli import SONDE, Sonde

# Requests at a fixed rate: each runs work() for a given CPU time by the thread's own clock, and other() for a
# constant one. The output is the CPU time of both functions and of all, in ns.
PACED = r"""
import os, sys, time

def work(ns):
    until = time.thread_time_ns() + ns
    while time.thread_time_ns() < until:
        pass

def other(ns):
    until = time.thread_time_ns() + ns
    while time.thread_time_ns() < until:
        pass

def main(work_ms, seconds):
    # other programs on the machine change neither the rate nor the waits
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    sys.stdin.readline()
    began = time.process_time_ns()
    begin = now = time.monotonic()
    at, in_work, in_other = begin, 0, 0
    while now < begin + seconds:
        before = time.thread_time_ns()
        work(int(work_ms * 1e6))
        between = time.thread_time_ns()
        other(4_000_000)
        in_work, in_other = in_work + between - before, in_other + time.thread_time_ns() - between
        at += 0.05
        now = time.monotonic()
        if at > now:
            time.sleep(at - now)
            now = at
    print(in_work, in_other, time.process_time_ns() - began, flush=True)

main(float(sys.argv[1]), float(sys.argv[2]))
"""

# handle() waits for a lock that holder() holds while it sleeps. The output is what own_clock.lock_waits() reads.
CHAIN = r"""
import json, os, sys, threading, time

lock = threading.Lock()
waits, holds = [], []

def holder(until):
    while time.monotonic() < until:
        with lock:
            begin = time.monotonic_ns()
            time.sleep(0.2)
            holds.append((begin, time.monotonic_ns()))
        time.sleep(0.02)

def handle(until):
    delays = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    while time.monotonic() < until:
        time.sleep(0.005)
        ran, delayed = time.thread_time_ns(), int(os.pread(delays, 99, 0).split()[1])
        begin = time.monotonic_ns()
        lock.acquire()
        end = time.monotonic_ns()
        waits.append((begin, end, time.thread_time_ns() - ran, int(os.pread(delays, 99, 0).split()[1]) - delayed))
        lock.release()

def main(seconds):
    sys.stdin.readline()
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=f, args=(until,)) for f in (holder, handle)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps([waits, holds]), flush=True)

main(float(sys.argv[1]))
"""


# ask() waits for an answer of another process, which sleeps in answer() before it sends one
ASKING = r"""
import os, socket, sys, time

def answer(connection):
    while connection.recv(10):
        time.sleep(0.05)
        connection.send(b"x")

def ask(connection, until):
    while time.monotonic() < until:
        connection.send(b"x")
        connection.recv(10)

listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
child = os.fork()
if not child:
    client.close()
    answer(server)
    os._exit(0)
server.close()
sys.stdin.readline()
ask(client, time.monotonic() + float(sys.argv[1]))
client.close()
os.waitpid(child, 0)
"""


def write_program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def record(folder, name, script, *args, options=()):
    """The program with these arguments, recorded from its first line to its end: the trace, and what the program printed."""
    path = os.path.join(folder, name + ".sonde")
    target = subprocess.Popen([sys.executable, "-W", "ignore", script, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    recording = Sonde(path, "-p", str(target.pid), *options)
    out = target.communicate("go\n")[0]
    recording.end(None)
    return path, out


def say(*args, status=0):
    r = subprocess.run([SONDE, *args], capture_output=True, text=True, check=False)
    if r.returncode != status:
        raise SystemExit(f"Bail out! sonde {' '.join(args)}: {r.returncode}\n{r.stderr}{r.stdout[:2000]}")
    return r.stdout


def compare(*args):
    return json.loads(say("diff", *args, "--format", "json"))


def folder():
    return tempfile.mkdtemp(prefix="sonde-diff-", dir=os.environ.get("TMPDIR"))

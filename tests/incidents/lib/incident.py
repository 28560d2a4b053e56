# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the programs of tests/incidents: companion processes, the READY line, and the clocks that measure the truth.

A program describes itself in a literal MANIFEST and marks two kinds of lines: `# waits` where time is lost, and `# cause`
where the code is that causes it. It calls serve() once its load runs.
"""
import ast
import contextlib
import functools
import glob
import json
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "incidents")
BUCKET_NS = 100_000_000
BUCKETS = 3000  # five minutes
MARK = re.compile(r"# (waits|cause)(?: \((\w+)\))?$")


def now():
    """Nanoseconds of CLOCK_MONOTONIC, which all processes share."""
    return time.perf_counter_ns()


# ---- clocks

def clocks_folder():
    """The folder of the clocks of all processes of this program; in memory, so that a killed worker loses nothing."""
    if "INCIDENT_CLOCKS" not in os.environ:
        os.environ["INCIDENT_CLOCKS"] = tempfile.mkdtemp(prefix="incident-", dir="/dev/shm")
    return os.environ["INCIDENT_CLOCKS"]


class Clock:
    """Adds up the time that each thread spends in `with clock:`, in buckets of 100 ms.

    The file of a thread: the start of an interval that is open (0: none), the number of intervals, then the buckets.
    """

    def __init__(self, name):
        self.name, self.folder, self.local = name, clocks_folder(), threading.local()

    def cells(self):
        cells = getattr(self.local, "cells", None)
        if cells is None or self.local.pid != os.getpid():
            path = os.path.join(self.folder, f"{self.name}.{os.getpid()}.{threading.get_native_id()}")
            with open(path, "wb+") as f:
                f.truncate(8 * (BUCKETS + 2))
                cells = memoryview(mmap.mmap(f.fileno(), 8 * (BUCKETS + 2))).cast("Q")
            self.local.cells, self.local.pid = cells, os.getpid()
        return cells

    def __enter__(self):
        self.cells()[0] = now()

    def __exit__(self, *_):
        cells, end = self.local.cells, now()
        start, cells[0] = cells[0], 0
        cells[1] += 1
        add(cells, start, end)

    def add_lost(self, start, cpu_start):
        """Adds the off-CPU part of the time since `start`, when the thread's CPU time was `cpu_start`."""
        end = now()
        cells = self.cells()
        cells[1] += 1
        add(cells, end - max(0, end - start - (time.thread_time_ns() - cpu_start)), end)

    def add_since(self, start):
        """Adds an interval that ends now."""
        cells = self.cells()
        cells[1] += 1
        add(cells, start, now())


def add(cells, start, end):
    """Distributes an interval over its buckets. Bucket 0 begins at BASE, which all processes of the program share."""
    while start < end:
        bucket = (start - BASE) // BUCKET_NS
        edge = min(end, BASE + (bucket + 1) * BUCKET_NS)
        if 0 <= bucket < BUCKETS:
            cells[2 + bucket] += edge - start
        start = edge


BASE = int(os.environ.setdefault("INCIDENT_BASE", str(now())))


def read_clocks():
    """[(name, pid, tid, number of intervals, ns in each bucket)] of all threads' clocks"""
    end, threads = now(), []
    for file in sorted(os.listdir(clocks_folder())):
        name, pid, tid = file.rsplit(".", 2)
        with open(os.path.join(clocks_folder(), file), "rb+") as f:
            if not os.fstat(f.fileno()).st_size:
                continue  # a thread has created its file and not yet given it a size
            cells = memoryview(mmap.mmap(f.fileno(), 0)).cast("Q")
        if cells[0]:
            add(cells, cells[0], end)
        last = max(0, (end - BASE) // BUCKET_NS)
        threads.append({"clock": name, "pid": int(pid), "tid": int(tid), "intervals": cells[1],
                        "buckets": list(cells[2:2 + min(last + 1, BUCKETS)])})
    return threads


# ---- the manifest and the marks

def manifest(path):
    """The MANIFEST of a program, which is not run, with its marks: (kind, function, line)"""
    with open(path) as f:
        tree = ast.parse(f.read())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MANIFEST":
            described = ast.literal_eval(node.value)
            break
    else:
        raise ValueError(f"{path}: no MANIFEST")
    others = [os.path.join(os.path.dirname(path), other) for other in described.get("files", ())]
    # native code needs only the function
    native = [{"what": what, "function": function, "file": "", "line": None} for what, function in described.get("native", ())]
    return described, [m for p in (path, *others) for m in marks(p)] + native


def marks(path):
    """The marked lines of a file and their functions"""
    with open(path) as f:
        text = f.read()
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        m = MARK.search(line)
        if m:
            around = [n for n in functions if n.lineno <= number <= n.end_lineno]
            inner = max(around, key=lambda n: n.lineno).name if around else "<module>"
            found.append({"what": m[1], "function": m[2] or inner, "file": os.path.basename(path), "line": number})
    return found


# ---- companions

children, folders, stops = [], [], []


def build(source, *options):
    """Builds a companion or library in C or C++ once. Returns its path."""
    cplus = source.endswith(".cpp")
    out = os.path.join(BUILD, os.path.splitext(os.path.basename(source))[0] + (".so" if "-shared" in options else ""))
    path = os.path.join(os.path.dirname(HERE), source)
    if not os.path.exists(out) or os.stat(out).st_mtime < os.stat(path).st_mtime:
        os.makedirs(BUILD, exist_ok=True)
        temporary = f"{out}.{os.getpid()}"
        subprocess.run(["c++" if cplus else "cc", "-O2", "-g", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", path, "-o", temporary, *options], check=True)
        os.rename(temporary, out)
    return out


def start(*argv, **kw):
    """Starts a process that ends with this program."""
    kw.setdefault("stdout", subprocess.DEVNULL)
    kw.setdefault("stdin", subprocess.DEVNULL)
    if not os.environ.get("INCIDENT_DEBUG"):
        kw.setdefault("stderr", subprocess.DEVNULL)
    children.append(subprocess.Popen([str(a) for a in argv], **kw))
    return children[-1]


def at_end(function):
    """Registers a function to call before the companions are ended."""
    stops.append(function)


def load(port, path, connections, think_ms=0):
    """Starts clients that request this path repeatedly, like users of a service. They are a small C program."""
    return start(build("lib/peer.c"), "load", port, path, connections, think_ms)


def has_clock():
    """True if the program works: one of its clocks has run"""
    return any(thread["intervals"] for thread in read_clocks())


def skip(why):
    """Ends a program that this machine can't run, with the reason."""
    stop()
    print(f"SKIP {why}", flush=True)
    os._exit(0)


def extension(source):
    """Builds a Python extension from C and imports it."""
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        skip(f"no Python.h in {include}")
    sys.path.append(os.path.dirname(build(source, "-shared", "-fPIC", "-I" + include)))


def again(path, *args, **kw):
    """Starts this program again as a companion that does the work, and waits for the line that it prints."""
    child = start(sys.executable, path, *args, stdout=subprocess.PIPE, **kw)
    child.stdout.readline()
    return child


def cgroup(controller, **limits):
    """Creates a control group (v2 if it has the controller, else v1) and moves this process with its future children there."""
    why = "none is mounted"
    for top, prefix in (("/sys/fs/cgroup", 2), ("/sys/fs/cgroup/unified", 2), (f"/sys/fs/cgroup/{controller}", 1)):
        names = {key: value for key, value in limits.items() if key.startswith(f"v{prefix}_")}
        try:
            with open(top + "/cgroup.controllers" if prefix == 2 else top + "/cgroup.procs") as f:
                if prefix == 2 and controller not in f.read().split():
                    continue
            path = tempfile.mkdtemp(prefix="incident-", dir=top)
            for key, value in names.items():
                write(os.path.join(path, key[3:].replace("__", ".")), value)
            write(path + "/cgroup.procs", os.getpid())
        except OSError as e:
            why = e
            continue
        at_end(functools.partial(leave, top, path))
        return prefix
    return skip(f"no control group with the {controller} controller can be made: {why}")


def leave(top, path):
    """Ends the processes in the control group and removes it."""
    write(top + "/cgroup.procs", os.getpid())
    for _ in range(100):
        with open(path + "/cgroup.procs") as f:
            pids = [int(pid) for pid in f.read().split()]
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for child in children:
            child.poll()
        with contextlib.suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(0.05)


def write(path, value):
    with open(path, "w") as f:
        f.write(str(value))


def postgres(sql):
    """Starts a private PostgreSQL with these tables; returns its connection parameters."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    where, port = folder(), free_port()
    shutil.chown(where, "postgres", "postgres")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    run = {"check": True, "capture_output": True, "cwd": "/"}
    subprocess.run([*as_user, programs + "/initdb", "-D", where + "/data", "--auth=trust", "-E", "UTF8", "-N"], **run)
    server = start(*as_user, programs + "/postgres", "-D", where + "/data", "-p", port, "-k", where, "-c", "fsync=off")
    at_end(lambda: server.send_signal(signal.SIGINT))  # ends without waiting for its clients
    ready = [programs + "/pg_isready", "-h", "127.0.0.1", "-p", str(port)]
    wait_for(lambda: not subprocess.run(ready, capture_output=True, check=False).returncode)
    subprocess.run([programs + "/psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-q", "-c", sql], **run)
    return f"host=127.0.0.1 port={port} user=postgres dbname=postgres"


def slow_server(delay_ms, port=0):
    """Starts a server that answers each request after this delay; returns its port."""
    port = port or free_port()
    start(build("lib/peer.c"), "slow", port, delay_ms)
    wait_port(port)
    return port


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, seconds=20):
    wait_for(lambda: connects(port), seconds)


def connects(port):
    """True if a server listens on this port"""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(what.__doc__)
        time.sleep(0.05)


def folder(parent=None):
    """Creates a folder that is removed at the end."""
    folders.append(tempfile.mkdtemp(prefix="incident-", dir=parent))
    return folders[-1]


def gunicorn(app_file, workers=1, threads=4, *options):
    """Starts gunicorn with `app` of this file; returns its port."""
    port = free_port()
    module = os.path.splitext(os.path.basename(app_file))[0]
    start(sys.executable, "-m", "gunicorn", "--chdir", os.path.dirname(app_file), "-w", workers, "--threads", threads, "--worker-class",
          "gthread", "--keep-alive", 60, "--graceful-timeout", 1, "-b", f"127.0.0.1:{port}", *options, f"{module}:app")
    wait_port(port)
    return port


def uvicorn(app_file):
    """Starts uvicorn with `app` of this file; returns its port."""
    port = free_port()
    module = os.path.splitext(os.path.basename(app_file))[0]
    start(sys.executable, "-m", "uvicorn", "--app-dir", os.path.dirname(app_file), "--port", port, "--log-level", "warning", f"{module}:app")
    wait_port(port)
    return port


def serve(path):
    """Prints READY once a clock has run, waits for SIGTERM, ends the companions and prints the truth."""
    described, lines = manifest(path)
    if described.get("clock"):
        wait_for(has_clock, 60)
    # a thread that begins may get a signal before the one that waits for it, and would end the process
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    print("READY", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    truth = {"cause": described.get("cause"), "marks": lines, "base": BASE, "bucket_ns": BUCKET_NS, "threads": read_clocks()}
    stop()
    print(json.dumps(truth), flush=True)
    os._exit(0)


def stop():
    for function in stops:
        function()
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(3)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for path in (*folders, clocks_folder()):
        shutil.rmtree(path, ignore_errors=True)


def in_background(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read()


def disk():
    """A folder on a disk, as /tmp may be in memory"""
    os.makedirs(BUILD, exist_ok=True)
    return BUILD


def redis_server():
    """Starts a private Redis; returns its port."""
    port = free_port()
    start("redis-server", "--port", port, "--dir", folder(), "--save", "", "--appendonly", "no")
    wait_port(port)
    return port

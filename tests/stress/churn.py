#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/stress/churn.py FOLDER [ROUNDS]: creates and ends objects of every kind for which a recording has a table.

Each round has: processes of fresh copies of a program; threads; fresh copies of libraries (a probed runtime and another one) that are
loaded, called, unloaded, and replaced by renaming; Python scripts with new function names, whose threads wait for the GIL;
namespaces and cgroups like a container's; files with new names; connections; waits for locks. All rounds have the same numbers, so
that the load is constant. Without ROUNDS it continues until SIGTERM. Prints the number of rounds.
"""
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.environ.get("B", os.path.join(ROOT, "build"))
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
PYTHON = sys.executable
libc = ctypes.CDLL(None, use_errno=True)
libc.dlclose.argtypes = [ctypes.c_void_p]

SCRIPT = """
import sys, threading
sys.setswitchinterval(0.0005)
def {name}_leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
class {name}_class:
{methods}
def {name}_run():
    c = {name}_class()
    for i in range({loops}):
        c.m0()
threads = [threading.Thread(target={name}_run) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
"""
METHODS = 40


def script(name, loops):
    lines = []
    for i in range(METHODS):
        body = f"self.m{i + 1}()" if i + 1 < METHODS else f"{name}_leaf(3000)"
        lines += [f"    def m{i}(self):", f"        return {body}"]
    return SCRIPT.format(name=name, methods="\n".join(lines), loops=loops)


class Churn:
    def __init__(self, folder):
        self.folder, self.round, self.stopped = folder, 0, False

    def fresh(self, end=""):
        return f"{self.folder}/{self.round:x}-{random.getrandbits(64):x}{end}"

    def processes(self):
        program = self.fresh("-program")
        shutil.copy("/bin/true", program)
        for _ in range(4):
            subprocess.run([program, self.fresh()], check=True)
        os.unlink(program)
        for _ in range(4):
            pid = os.fork()
            if not pid:
                os._exit(0)
            os.waitpid(pid, 0)

    def threads(self):
        some = [threading.Thread(target=time.sleep, args=(0.002,)) for _ in range(8)]
        for t in some:
            t.start()
        for t in some:
            t.join()

    def load(self, path, function):
        library = ctypes.CDLL(path)
        if function:
            getattr(library, function)(ctypes.byref(ctypes.c_void_p()), 64)
        time.sleep(0.15)  # sonde is notified of the mapping, examines the file, and probes known libraries
        if function:
            getattr(library, function)(ctypes.byref(ctypes.c_void_p()), 64)
        libc.dlclose(library._handle)

    def libraries(self):
        folder = self.fresh()
        os.mkdir(folder)
        plain = next(p for p in ("/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib64/libz.so.1")
                     if os.path.exists(p))
        for source, name, function in ((FAKE, "libcudart.so.12", "cudaMalloc"), (plain, "libz.so.1", None)):
            if not os.path.exists(source):
                continue
            shutil.copy(source, f"{folder}/new")
            os.rename(f"{folder}/new", f"{folder}/{name}")
            self.load(f"{folder}/{name}", function)
            # replaced by renaming while no process maps it
            shutil.copy(source, f"{folder}/new")
            os.rename(f"{folder}/new", f"{folder}/{name}")
            self.load(f"{folder}/{name}", function)
        shutil.rmtree(folder)

    def python(self):
        name = f"f{self.round:x}_{random.getrandbits(32):x}"
        path = self.fresh(f"-{name}.py")
        with open(path, "w") as f:
            f.write(script(name, 60))
        subprocess.run([PYTHON, path], check=True)
        os.unlink(path)
        # new code objects in a long-lived process
        text = script(f"{name}_here", 20).replace("setswitchinterval(0.0005)", "getswitchinterval()")
        exec(compile(text, path, "exec"), {})

    def container(self):
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "/bin/true"], check=False,
                       stderr=subprocess.DEVNULL)
        for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"):
            path = f"{base}/sonde-churn-{random.getrandbits(48):x}"
            try:
                os.mkdir(path)
            except OSError:
                continue
            child = subprocess.Popen(["/bin/sleep", "0.02"])
            try:
                with open(f"{path}/cgroup.procs", "w") as f:
                    f.write(str(child.pid))
            except OSError:
                pass
            child.wait()
            try:
                os.rmdir(path)
            except OSError:
                pass
            break

    def files(self):
        for _ in range(8):
            path = self.fresh("-file")
            with open(path, "w") as f:
                f.write("x" * 5000)
                f.flush()
            os.rename(path, path + "-renamed")
            with open(path + "-renamed") as f:
                f.read()
            os.unlink(path + "-renamed")

    def connections(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            for _ in range(4):
                with socket.create_connection(server.getsockname()) as c:
                    with server.accept()[0] as s:
                        c.send(b"x")
                        s.recv(1)

    def locks(self):
        lock = threading.Lock()

        def take():
            for _ in range(4):
                with lock:
                    time.sleep(0.001)
        some = [threading.Thread(target=take) for _ in range(3)]
        for t in some:
            t.start()
        for t in some:
            t.join()

    def all(self):
        for part in (self.processes, self.threads, self.libraries, self.python, self.container, self.files, self.connections,
                     self.locks):
            if self.stopped:
                return
            part()
        self.round += 1


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    churn = Churn(tempfile.mkdtemp(prefix="churn-", dir=sys.argv[1]))

    def stop(*_):
        churn.stopped = True
    signal.signal(signal.SIGTERM, stop)
    while not churn.stopped and (not rounds or churn.round < rounds):
        churn.all()
    shutil.rmtree(churn.folder, ignore_errors=True)
    print(churn.round, flush=True)


if __name__ == "__main__":
    main()

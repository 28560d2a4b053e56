# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that execute commands, line by line, and answer each line: calls of a CUDA runtime made for tests are
numbered by their argument, so a trace can be compared with them call by call. Sonde beside them."""
import os
import signal
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))

LIBRARY = os.path.join(B, "tests/fakes/libcudart.so")
SCRIPT = r"""
import ctypes, os, sys, threading, time
lib = ctypes.CDLL(os.environ["PUPPET_LIBRARY"]) if os.environ.get("PUPPET_LIBRARY") else None
out = ctypes.c_void_p()

def calls(first, n):
	for i in range(int(first), int(first) + int(n)):
		lib.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(i))

def name(text):
	with open("/proc/self/comm", "w") as f:
		f.write(text)

def thread_name(text):
	def rename():
		with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
			f.write(text)
	t = threading.Thread(target=rename)
	t.start()
	t.join()

def fork(first, n):
	pid = os.fork()
	if not pid:
		calls(first, n)
		os._exit(0)
	os.waitpid(pid, 0)
	return pid

for line in sys.stdin:
	word, *args = line.split()
	if word == "exec":
		print("going", flush=True)
		os.execv(args[0], args + ["-u", "-c", os.environ["PUPPET_SCRIPT"]])
	print({"calls": calls, "name": name, "thread_name": thread_name, "fork": fork, "hello": os.getpid}[word](*args),
	      flush=True)
"""


class Puppet:
    def __init__(self, program="/usr/bin/python3", library=LIBRARY):
        env = {**os.environ, "PUPPET_LIBRARY": library, "PUPPET_SCRIPT": SCRIPT}
        self.process = subprocess.Popen([program, "-u", "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        self.pid = self.process.pid
        self.do("hello")

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def exec(self, program):
        """Runs itself anew under another name."""
        self.do(f"exec {program}")
        self.do("hello")

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


class Sonde:
    """A recording that has begun when this returns; .wait_for() reads its messages."""

    def __init__(self, path, *options, mode="", until="tracing into", prefix=(), program=SONDE):
        self.path = path
        self.messages = ""
        self.process = subprocess.Popen([*prefix, program, "record", "-f", "-o", path, *options], stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "SONDE_TEST": mode})
        self.wait_for(until)

    def wait_for(self, text):
        for line in self.process.stderr:
            self.messages += line
            if text in line:
                return
        raise SystemExit(f"Bail out! sonde record ended without '{text}':\n{self.messages}")

    def end(self, sig=signal.SIGINT):
        if sig:
            self.process.send_signal(sig)
        self.messages += self.process.communicate(timeout=150)[1]
        return self.process.returncode


def allocs(trace):
    """(process, number) of each call, sorted."""
    return sorted((e["pid"], e["bytes"]) for e in trace.events("cuda_alloc"))


def numbered(pid, first, n):
    return [(pid, i) for i in range(first, first + n)]

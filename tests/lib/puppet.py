# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that execute one command per line of input and answer each. They call a fake CUDA runtime, and each call has its number
as its argument, so that a trace can be compared call by call."""
import os
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))

LIBRARY = os.path.join(B, "tests/fakes/libcudart.so")
RANGES = os.path.join(B, "tests/fakes/libsonde-cupti.so")  # stands for the shim
SCRIPT = r"""
import ctypes, os, sys, threading, time
lib = ctypes.CDLL(os.environ["PUPPET_LIBRARY"]) if os.environ.get("PUPPET_LIBRARY") else None
ranges = ctypes.CDLL(os.environ.get("PUPPET_RANGES") or None)
if os.environ.get("PUPPET_RANGES"):
	ranges.sonde_cupti_range.argtypes = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64
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

def in_thread(word, *args):
	t = threading.Thread(target=WORDS[word], args=args)
	t.start()
	t.join()

def spin(seconds):
	end = time.process_time() + float(seconds)
	while time.process_time() < end:
		sum(range(10000))

def start():
	lib.cudaProfilerStart()

def stop():
	lib.cudaProfilerStop()

def nvtx(what, name, domain="", number=0):
	ranges.sonde_cupti_range({"begin": 1, "end": 2}[what], name.encode(), domain.encode() or None, int(number))

WORDS = {"calls": calls, "name": name, "thread_name": thread_name, "fork": fork, "hello": os.getpid, "in_thread": in_thread,
	 "start": start, "stop": stop, "nvtx": nvtx, "spin": spin}

for line in sys.stdin:
	word, *args = line.split()
	if word == "exec":
		print("going", flush=True)
		os.execv(args[0], args + ["-u", "-c", os.environ["PUPPET_SCRIPT"]])
	print(WORDS[word](*args), flush=True)
"""


def fake_runtime():
    """
    An environment in which a program has the fake CUDA runtime in place of the real one: each function is a perf event or two where
    there are no other links, each of these takes some 50 ms to attach, and the fake has a twentieth of the functions.
    """
    folder = os.path.join(TMP, "fake-runtime")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for version in ("12", "13"):
            os.symlink(LIBRARY, os.path.join(folder, f"libcudart.so.{version}"))
    return {**os.environ, "LD_LIBRARY_PATH": folder}


class Puppet:
    def __init__(self, program="/usr/bin/python3", library=LIBRARY, ranges=""):
        env = {**os.environ, "PUPPET_LIBRARY": library, "PUPPET_RANGES": ranges, "PUPPET_SCRIPT": SCRIPT}
        self.process = subprocess.Popen([program, "-u", "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        self.pid = self.process.pid
        self.do("hello")

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def exec(self, program):
        """Execs a copy of itself that has another name."""
        self.do(f"exec {program}")
        self.do("hello")

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def allocs(trace):
    """(process, number) of each call, sorted."""
    return sorted((e["pid"], e["bytes"]) for e in trace.events("cuda_alloc"))


def numbered(pid, first, n):
    return [(pid, i) for i in range(first, first + n)]

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a small C program under `sonde record` and reads the trace; prints TAP."""
import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time

from tap import skip_all

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# How many times slower than a usual machine this one may be: 1 on hardware, more under emulation
SLOW = int(os.environ.get("SLOW", 1))
PROBE_NS = 2000 * SLOW  # a probe may add this much to a time that the program measures
EVENT_OPEN = 1
EVENT_STARTED_BEFORE = 8


def counted(found, true):
	"""The detail of a check of counts. tests/vm/steps.py parses it to allow for lost events that the recording reports."""
	return f"counted {found} of {true}"


def counted_set(found, true):
	"""The same for two sets: elements of the first set alone are surplus."""
	return counted(len(true) + len(found - true) if found - true else len(found), len(true))


def compile_c(source):
	"""The path of the program built from this C file, which is compiled here if the build has none."""
	built = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), os.path.relpath(source, ROOT)[:-2])
	if os.access(built, os.X_OK) and os.stat(built).st_mtime > os.stat(source).st_mtime:
		return built
	program = os.path.join(workdir(), os.path.basename(source)[:-2])
	subprocess.run(["cc", "-O2", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-pthread", source, "-o", program],
		       check=True)
	return program


_workdir = None


def workdir():
	global _workdir
	if not _workdir:
		_workdir = tempfile.mkdtemp(prefix="sonde-test-")
	return _workdir


def steal_ns():
	with open("/proc/stat") as f:
		fields = f.readline().split()
	return int(fields[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Recording:
	"""
	Records a program that waits for a line on stdin. The recording begins before
	that line and lasts until the program ends, for stop_after seconds, or until the program prints a line that begins
	with stop_at. Its lines on stdout are .output. named=False records without a filter and needs one of these.
	sonde is started when the program has printed the line `ready`, which is not in .output. The program's line comes
	`settle` seconds after tracing has begun: a shim in it looks for tracers once a second.
	.began, .live and .stopped are this test's clock (CLOCK_MONOTONIC, ns) before sonde starts, when it traces, and after
	it has ended.
	"""

	def __init__(self, program, families, options=(), limit=40, stop_after=None, stop_at=None, named=True, ready=None,
		     settle=0):
		limit *= SLOW
		if os.geteuid():
			skip_all("tracing needs root")
		sonde = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
		self.path = os.path.join(workdir(), "trace.sonde")
		target = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		self.pid = target.pid
		self.output = []
		if ready:
			self._read_to(target, ready)
		self.began, self.output = time.monotonic_ns(), []
		self.tracer = subprocess.Popen([sonde, "record", "-t", families, *options, "-f", "-o", self.path,
						*(["-p", str(target.pid)] if named else []), "-d", str(stop_after or limit)],
					       stderr=subprocess.PIPE, text=True)
		self.messages = ""
		try:
			self._wait_for("tracing into")
			time.sleep(settle * SLOW)
			self.live = time.monotonic_ns()
			self.steal = steal_ns()
			target.stdin.write("go\n")
			target.stdin.flush()
			if stop_at:
				self._read_to(target, stop_at)
				self.tracer.send_signal(signal.SIGINT)
			if not stop_after and not stop_at:
				self.output = target.communicate(timeout=limit)[0].splitlines()
			self.messages += self.tracer.communicate(timeout=limit)[1]
			self.stopped = time.monotonic_ns()
			if stop_after or stop_at:
				self.output += target.communicate(timeout=limit)[0].splitlines()
			self.steal = steal_ns() - self.steal
		finally:
			for p in (target, self.tracer):
				if p.poll() is None:
					p.kill()
		self.status = self.tracer.returncode
		from sonde_trace import Trace
		self.trace = Trace(self.path)

	def _wait_for(self, text):
		for line in self.tracer.stderr:
			self.messages += line
			if text in line:
				return
		raise SystemExit(f"Bail out! sonde record did not begin:\n{self.messages}")

	def _read_to(self, target, text):
		for line in target.stdout:
			self.output.append(line.rstrip("\n"))
			if line.startswith(text):
				return
		raise SystemExit(f"Bail out! the program ended without '{text}'")

	def of(self, kind):
		"""The program's own events of this kind, ordered by time."""
		events = [e for e in self.trace.events(kind) if e["pid"] == self.pid]
		return sorted(events, key=lambda e: (e["time"], e.get("start", 0)))


def cleanup():
	if _workdir and not os.environ.get("KEEP"):
		shutil.rmtree(_workdir, ignore_errors=True)


atexit.register(cleanup)

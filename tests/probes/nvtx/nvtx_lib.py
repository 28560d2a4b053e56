# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of family nvtx: programs with NVTX's headers, and the names in a trace."""
import collections
import os
import struct
import subprocess

from recording import Recording, workdir
from sonde_trace import Trace
from tap import skip_all

ROOT = os.environ.get("ROOT", os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "test", "sonde"))
SHIM = os.path.join(os.path.dirname(SONDE), "libsonde-cupti.so")
PUSHED, STARTED = 1, 2


def programs(name):
	"""{version of CUDA: path} of the program, built with each version's headers; skips the test if there is none"""
	found = {}
	for version in ("12", "13"):
		path = os.path.join(BUILD, "tests", "probes", "nvtx", f"{name}-{version}")
		if os.path.exists(path):
			found[version] = path
	if not found:
		skip_all("NVTX's headers could not be downloaded: scripts/nvtx.sh prints why")
	return found


class Texts:
	"""The texts of a trace's processes, by their ids"""

	def __init__(self, trace):
		self.by_id = {(e["pid"], e["number"]): e["text"] for e in trace.events("nvtx_text")}

	def of(self, e, field):
		return self.by_id.get((e["pid"], e[field]), "") if e[field] else ""

	def label(self, e):
		domain = self.of(e, "domain")
		return (domain + ":" if domain else "") + self.of(e, "name")


def payload(e):
	"""The value of a range's or mark's payload"""
	bits = e["payload"]
	kind = e["payload_kind"]
	if kind == 2:
		return struct.unpack("<q", struct.pack("<Q", bits & (1 << 64) - 1))[0]
	if kind == 3:
		return struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0]
	if kind == 4:
		return bits & 0xffffffff
	return bits if kind else None


def counts(events, texts):
	return collections.Counter(texts.label(e) for e in events)


class Launched(Recording):
	"""A program that `record` starts. The first line that it prints is its pid."""

	def __init__(self, program, families="nvtx"):
		self.path = os.path.join(workdir(), "launched.sonde")
		tracer = subprocess.run([SONDE, "record", "-t", families, "-f", "-o", self.path, "--", *program], input="go\n",
					capture_output=True, text=True, timeout=60)
		self.status, self.messages = tracer.returncode, tracer.stderr
		self.output = tracer.stdout.splitlines()
		self.pid = int(self.output[0])
		self.trace = Trace(self.path)

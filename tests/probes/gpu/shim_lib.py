# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of the shim and of family gpu: the doubles, the events that they log (the truth), the shim's records."""
import collections
import os
import shutil
import struct
import subprocess
import tempfile
import time

ROOT = os.environ.get("ROOT", os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
SHIM = os.path.join(os.path.dirname(os.environ.get("SONDE", os.path.join(BUILD, "test", "sonde"))), "libsonde-cupti.so")
DOUBLES = os.path.join(BUILD, "tests", "fakes", "cuda")
CONSUMER = os.path.join(DOUBLES, "consumer.so")

from shim_records import (  # noqa: F401  # noqa: F401
    ALL,
    CALLS,
    COPIES,
    GRAPHS,
    IMPAIRED,
    KERNELS,
    KINDS,
    LEFT,
    MEMORY,
    NODES,
    REFUSED,
    STARTED,
    STOPPED,
    SYNC,
    WAITING,
    read_batches,
)
from tap import ok, skip_all


def versions():
    """The CUDA versions whose doubles could be built; skips the test if there is none"""
    found = [v for v in ("12", "13") if os.path.exists(os.path.join(DOUBLES, v, "fake_training"))]
    if not found:
        skip_all("NVIDIA's CUPTI headers could not be downloaded: scripts/cupti.sh prints why")
    return found


def training(version):
    return os.path.join(DOUBLES, version, "fake_training")


def setting(**values):
    return ",".join(f"{k}={v}" for k, v in values.items())


def read_truth(path):
    """{kind: [event]} that the simulated machine logged. Every line has the same fields, of which the last three are texts."""
    found, keys = collections.defaultdict(list), None
    for line in open(path) if os.path.exists(path) else ():
        # the program may have been killed while it wrote
        if not line.endswith("\n"):
            continue
        op, *words = line[:-1].replace("=", " ").split(" ")
        keys = keys or words[::2]
        found[op].append(dict(zip(keys, [*map(int, words[1:-6:2]), *words[-5::2]]), runtime=int(op == "runtime")))
    return found


def key_of(kind, e, names=None):
    """The fields that identify an event of the truth or of the shim"""
    if kind == "kernel":
        name = e["name"] if names is None else names.get(e["name"], "?")
        return name, e["correlation"], e["device"], e["context"], e["stream"], e["graph"], \
            e["node"] if names is None else e["graph_node"]
    if kind == "memcpy":
        return e["bytes"], e["kind"], e["correlation"], e["device"], e["stream"]
    if kind == "memset":
        return e["bytes"], e["correlation"], e["device"], e["stream"], e["graph"]
    if kind == "sync":
        return e["kind"], e["correlation"], e["context"], e["stream"]
    if kind == "graph":
        return e["graph"], e["correlation"], e["stream"]
    if kind == "memory":
        return e["address"], e["bytes"], e["kind" if names is None else "operation"], e["correlation"]
    return e["runtime"], e["kind" if names is None else "function"], e["correlation"], e["tid"], e["result"]


TRUTH = {"kernel": "kernel", "memcpy": "copy", "memset": "set", "sync": "sync", "graph": "graph", "memory": "memory"}


def true_events(truth, kind):
    """What the doubles say of this kind of event: calls are those of libcuda and of libcudart."""
    return truth["call"] + truth["runtime"] if kind == "call" else truth[TRUTH[kind]]


def compare(label, truth, got, kinds, names, error, pid=None, unfinished=0):
    """Each event of these kinds must be recorded exactly once, with times within the error (ns). `unfinished` events may lack an end."""
    worst = open_ones = 0
    for kind in kinds:
        want = [e for e in true_events(truth, kind) if e["traced"] and pid in (None, e["pid"])]
        a = collections.Counter(key_of(kind, e) for e in want)
        b = collections.Counter(key_of(kind, e, names) for e in got[kind])
        ok(a == b and a, f"{label}: each of {len(want)} {kind} events exactly once",
           f"missing {list((a - b).items())[:5]}", f"too many {list((b - a).items())[:5]}")
        by_key = collections.defaultdict(list)
        for e in want:
            by_key[key_of(kind, e)].append(e)
        for v in by_key.values():
            v.sort(key=lambda e: e["start"])
        for e in sorted(got[kind], key=lambda e: (e.get("start") or 0, e["time"])):
            twin = by_key.get(key_of(kind, e, names))
            if not twin:
                continue
            t = twin.pop(0)
            moment = kind == "memory"
            if not e["time"] and open_ones < unfinished:
                open_ones += 1
                continue
            worst = max(worst, abs(e["time"] - (t["start"] if moment else t["end"])),
                        0 if moment else abs(e["start"] - t["start"]))
    ok(worst <= error, f"{label}: times agree within {error} ns, the clock's error", f"off by {worst}")
    print(f"# {label}: off by {worst} ns at most, said {error}")
    return worst


class Shimmed:
    """A run of the training with the shim and a consumer loaded"""

    def __init__(self, version, *args, groups=ALL, cuda="", cupti="", wait=True, program=None, **env):
        self.dir = tempfile.mkdtemp(prefix="sonde-shim-")
        self.out, self.truth_path = os.path.join(self.dir, "out"), os.path.join(self.dir, "truth")
        self.env = dict(os.environ, SHIM_OUT=self.out, SHIM_GROUPS=str(groups),
                        FAKE_CUDA=cuda, FAKE_CUPTI=cupti, FAKE_CUDA_TRUTH=self.truth_path,
                        **dict({"LD_PRELOAD": f"{SHIM}:{CONSUMER}", "CUDA_INJECTION64_PATH": SHIM}, **env))
        self.child = subprocess.Popen([program or training(version), *args], env=self.env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if wait:
            self.finish()

    def finish(self, timeout=60):
        self.errors = self.child.communicate(timeout=timeout)[1]
        self.status = self.child.returncode
        self.truth = read_truth(self.truth_path)
        self.got, self.whole = read_batches(self.out) if os.path.exists(self.out) else (collections.defaultdict(list), True)
        self.names = {e["name"]: e["text"] for e in self.got["name"]}
        self.error = max((e["error"] for e in self.got["clock"]), default=0) + 3
        return self

    def states(self):
        return [e["state"] for e in self.got["shim"]]


def sleeping_copy():
    """A copy of the shim under another name, in a folder of its own: other recordings on this machine neither recognize it nor wake it."""
    path = os.path.join(tempfile.mkdtemp(prefix="sonde-dormant-"), "asleep.so")
    shutil.copy(SHIM, path)
    return path


class States:
    """The states that the shim has reported so far, read while the file grows"""

    def __init__(self, path):
        self.path, self.pos, self.found = path, 0, []

    def wait_for(self, state, n):
        for _ in range(3000):
            if self.found.count(state) >= n:
                return True
            time.sleep(0.02)
            self.read()
        return False

    def read(self):
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as f:
            f.seek(self.pos)
            data = f.read()
        at = 0
        while len(data) - at >= 24:
            size = struct.unpack_from("<I", data, at + 8)[0]
            if len(data) - at < size:
                break
            # it is alone in its batch, or the last record
            record = at + 24
            while record < at + size:
                length, kind = struct.unpack_from("<HH", data, record)
                if kind == 15:
                    self.found.append(struct.unpack_from("<I", data, record + 24 + 16)[0])
                record += length
            at += size
        self.pos += at

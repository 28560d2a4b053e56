#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_spans [PATTERN]: the cost of sonde, compared with its peers. Prints tables and writes build/bench.json.

  spans   ns by which a traced call is slower: sonde, an empty BPF program at sonde's probe site, bpftrace. The peers
          alternate; a round's figure is its fastest batch (interruptions only add time), the table has the medians of
          the rounds. bpftrace only adds up each call in a map, while sonde writes a record of it.
  bytes   bytes per event in a trace of the real CUDA runtime, compared with the entropy of its columns.

Environment: ROUNDS (5), CALLS a thread for `bytes` (20000). Nothing here passes or fails.
"""
import collections
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.join(ROOT, "build")
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "sonde"))
WORK = os.path.join(BUILD, "tests", "workloads")
ROUNDS = int(os.environ.get("ROUNDS", "5"))

# Functions of tests/fakes/libcudart.c that only have this prologue
ENTRIES = {"push": "cudaStreamDestroy", "endbr64": "cudaStreamSynchronize"}
ENDBR64 = bytes.fromhex("f30f1efa")


def wait_for(stream, word, what):
    text = ""
    while word not in text:
        line = stream.readline()
        if not line:
            raise RuntimeError(f"{what}: {text}")
        text += line


class Nothing:
    def __init__(self, library, pid, tmp):
        pass

    def stop(self):
        pass


class Sonde:
    def __init__(self, library, pid, tmp, *args):
        command = [SONDE, "record", "-f", "-o", os.path.join(tmp, "trace"), "-t", "cuda", *args]
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        wait_for(self.child.stderr, "tracing into", "sonde record")

    def stop(self):
        self.child.send_signal(signal.SIGINT)
        text = self.child.communicate()[1]
        if self.child.returncode or " 0 lost" not in text:
            print("# sonde: " + text.strip().replace("\n", "\n# "))


class SondePid(Sonde):
    def __init__(self, library, pid, tmp):
        super().__init__(library, pid, tmp, "-p", str(pid))


class Empty:
    """An empty BPF program on entry and return, with the kind of link and the probe site that sonde uses"""

    def __init__(self, library, pid, tmp):
        command = [os.path.join(WORK, "empty_session"), library] + [hex(o) for o in places(library)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait_for(self.child.stdout, "ready", "empty_session")

    def stop(self):
        self.child.stdin.close()
        self.child.wait()


class Bpftrace:
    def __init__(self, library, pid, tmp):
        at = [f"probe:{library}:{f}" for f in ENTRIES.values()]
        program = (",".join("u" + a for a in at) + " { @start[tid] = nsecs; } " + ",".join("uret" + a for a in at) +
                   " /@start[tid]/ { @ns = sum(nsecs - @start[tid]); @calls = count(); delete(@start[tid]); }"
                   ' interval:ms:100 { printf("attached\\n"); }')
        self.child = subprocess.Popen(["bpftrace", "-e", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, text=True)
        wait_for(self.child.stdout, "attached\n", "bpftrace")

    def stop(self):
        self.child.send_signal(signal.SIGINT)
        self.child.communicate()


PEERS = {"nothing": Nothing, "sonde": Sonde, "sonde -p": SondePid, "empty session": Empty, "bpftrace": Bpftrace}


def places(library):
    """{function: sonde's probe site}: the push after an endbr64, else the entry"""
    out = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[-1]: int(line.split()[0], 16) for line in out.splitlines() if len(line.split()) == 3}
    with open(library, "rb") as f:
        data = f.read()
    # the first segments of a small library have equal offsets in file and memory
    return [symbols[f] + 4 * (data[symbols[f]:symbols[f] + 4] == ENDBR64) for f in ENTRIES.values()]


def measure(spin, function, calls, batches):
    spin.stdin.write(f"{function} {calls} {batches}\n")
    spin.stdin.flush()
    return min(map(float, spin.stdout.readline().split()))


def spans(tmp):
    """{entry: {peer: [ns per call of each round]}}"""
    library = os.path.join(tmp, "libcudart.so.99")
    shutil.copy(os.path.join(BUILD, "tests", "fakes", "libcudart.so"), library)
    peers = {n: p for n, p in PEERS.items() if p is not Bpftrace or shutil.which("bpftrace")}
    found = {e: {n: [] for n in peers} for e in ENTRIES}
    spin = subprocess.Popen([os.path.join(WORK, "call_spin"), library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
    wait_for(spin.stdout, "ready", "call_spin")
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            p = peer(library, spin.pid, tmp)
            for entry, function in ENTRIES.items():
                measure(spin, function, 1000, 1)
                found[entry][name].append(measure(spin, function, 2000, 40))
            p.stop()
    spin.stdin.close()
    spin.wait()
    return found


def print_spans(found):
    if "bpftrace" not in next(iter(found.values())):
        print("\nno bpftrace to compare with: `scripts/deps.sh peers` installs it")
    print(f"\nns a call, median of {ROUNDS} rounds (lowest to highest)")
    names = list(next(iter(found.values())))
    print("entry    " + "".join(f"{n:>24}" for n in names))
    median = {}
    for entry, peers in found.items():
        median[entry] = {n: statistics.median(v) for n, v in peers.items()}
        print(f"{entry:9}" + "".join(f"{median[entry][n]:8.0f} ({min(v):.0f} to {max(v):.0f})".rjust(24)
                                     for n, v in peers.items()))
    for entry, m in median.items():
        own = m["sonde"] - m["nothing"]
        line = f"{entry}: sonde is {m['sonde'] - m['empty session']:+.0f} ns from the empty session program"
        if "bpftrace" in m:
            line += f"; bpftrace costs {(m['bpftrace'] - m['nothing']) / own:.2f} times as much"
        print(line)
    return {"rounds": found, "median": median}


def entropy(values):
    """The entropy in bytes per value"""
    n = len(values)
    return -sum(c / n * math.log2(c / n) for c in collections.Counter(values).values()) / 8


def transformed(name, values, columns):
    """Values as stored by docs/format.md: the end as the difference to the previous row, the start as the difference to the end"""
    if name == "time":
        return [b - a for a, b in zip(values, values[1:])] or [0]
    if name == "start":
        return [t - v for t, v in zip(columns["time"], values)]
    return values


def kind_bytes(trace, names):
    """[(event, events, bytes per event, sum of the columns' entropies)], computed per chunk, as chunks are compressed separately"""
    rows, size, least = collections.Counter(), collections.Counter(), collections.Counter()
    for chunk in trace.chunks:
        for kind in chunk.kinds:
            event = trace.by_id.get(kind[0])
            if event is None or event.name not in names:
                continue
            columns = trace.columns(kind)
            rows[event.name] += kind[1]
            size[event.name] += kind[3]
            least[event.name] += kind[1] * sum(entropy(transformed(n, v, columns)) for n, v in columns.items())
    return [(n, rows[n], size[n] / rows[n], least[n] / rows[n]) for n in sorted(rows, key=rows.get, reverse=True)]


def bytes_an_event(tmp):
    from sonde_trace import Trace
    program = os.path.join(BUILD, "tests", "probes", "cuda", "cuda_truth-13")
    if not os.path.exists(program):
        print("\nbytes: no CUDA runtime (scripts/cuda.sh 13)")
        return None
    p = subprocess.Popen([program, os.path.join(tmp, "truth"), os.environ.get("CALLS", "20000")],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(p.stdout, "ready", program)
    s = Sonde("", p.pid, tmp)
    began = time.monotonic()
    p.communicate("go\n")
    s.stop()
    trace = Trace(os.path.join(tmp, "trace"))
    names = {e.name for e in trace.by_id.values() if e.name.startswith("cuda_")}
    kinds = kind_bytes(trace, names)
    total = sum(k[1] for k in kinds)
    size = sum(k[1] * k[2] for k in kinds)
    least = sum(k[1] * k[3] for k in kinds)
    print(f"\nbytes an event, {total} calls of the CUDA runtime in {time.monotonic() - began:.1f} s")
    print(f"{'event':20}{'events':>10}{'bytes':>8}{'entropy':>9}{'ratio':>7}")
    for name, n, b, e in kinds + [("all", total, size / total, least / total)]:
        print(f"{name:20}{n:10}{b:8.2f}{e:9.2f}{b / e:7.2f}")
    whole = os.path.getsize(os.path.join(tmp, "trace"))
    print(f"the whole file: {whole / total:.2f} bytes an event")
    return {"kinds": kinds, "file_bytes": whole, "events": total}


BENCHES = {"spans": lambda tmp: print_spans(spans(tmp)), "bytes": bytes_an_event}


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    results = {"machine": {"kernel": platform.release(), "cpus": os.cpu_count()}}
    for name, bench in BENCHES.items():
        if pattern not in name:
            continue
        tmp = tempfile.mkdtemp(prefix="sonde-bench-")
        try:
            results[name] = bench(tmp)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    with open(os.path.join(BUILD, "bench.json"), "w") as f:
        json.dump(results, f, indent=1)
    print("\nwritten to build/bench.json")


main()

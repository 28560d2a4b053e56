#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Collectives of eight ranks on doubles of NCCL and CUDA: bandwidths by their kernels, who is last, who never comes, who calls another one, and
what one rank alone shows. The truth is what the ranks and the simulated GPU log.
test: timeout=300 waits"""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu"))
from common import FAKE, SONDE
from shim_lib import DOUBLES, read_truth, versions
from tap import done, ok
from waiting import wait_for

RANKS, STEPS, HASH = 8, 20, 0xc0ffee00d1ce
MIB = 1 << 20
# function: bytes of the call, size and factor by nccl-tests' PERFORMANCE.md, algorithm and protocol by its kernel
N = RANKS
SPEEDS = {
    "ncclAllReduce": (4 * MIB, 4 * MIB, 2 * (N - 1) / N, "RING", "LL"),
    "ncclAllGather": (MIB, N * MIB, (N - 1) / N, "RING", "LL"),
    "ncclReduceScatter": (MIB // 2, N * MIB // 2, (N - 1) / N, "RING", "LL"),
    "ncclBroadcast": (MIB // 4, MIB // 4, 1, "RING", "LL"),
    "ncclReduce": (3 * MIB // 4, 3 * MIB // 4, 1, "TREE", "LL"),
}
tmp = tempfile.mkdtemp(prefix="sonde-collectives-")
version = versions()[-1]


def report(path, name, *options):
    return json.loads(subprocess.run([SONDE, "report", path, name, "--format", "json", *options], capture_output=True, text=True, check=True).stdout)


class Run:
    """A recording of fake_ranks, and its report ranks; .kernels is what the simulated GPUs logged"""

    def __init__(self, name, *args, families="nccl,gpu,proc,sched", hangs=False):
        self.path, truth = os.path.join(tmp, name + ".sonde"), os.path.join(tmp, name + ".truth")
        env = dict(os.environ, FAKE_NCCL=os.path.join(tmp, name), FAKE_CUDA_TRUTH=truth, SONDE_CUPTI_WAIT="1000")
        command = [SONDE, "record", "-f", "-o", self.path, "-t", families, "--", os.path.join(DOUBLES, version, "fake_ranks"), "-l", FAKE, *args]
        output = os.path.join(tmp, name + ".out")
        with open(output, "w") as out, open(os.path.join(tmp, name + ".err"), "w") as err:
            sonde = subprocess.Popen(command, env=env, stdout=out, stderr=err, start_new_session=True)
        if hangs:
            wait_for(lambda: "hung" in open(output).read(), 60)
            time.sleep(3)
            # it ends the recording and the process that started the ranks, which still hang
            sonde.send_signal(signal.SIGINT)
        sonde.wait(timeout=120)
        if hangs:
            os.killpg(sonde.pid, signal.SIGKILL)
        self.messages = open(os.path.join(tmp, name + ".err")).read()
        self.pids = {}
        for line in open(output):
            if line.strip() != "hung":
                rank, pid, *_ = line.split()
                self.pids[int(rank)] = int(pid)
        self.kernels = read_truth(truth)["kernel"]
        self.ranks = report(self.path, "ranks")

    def first(self):
        return self.ranks["findings"][0]


def bandwidths():
    r = Run("all", "-n", str(RANKS), "-s", str(STEPS), "-a")
    rows = {row["name"]: row for row in report(r.path, "nccl-api")["tables"]["speeds"]}
    ok(set(rows) == set(SPEEDS), "a row for each function", list(rows), r.messages)
    for name, (nbytes, size, factor, algorithm, protocol) in SPEEDS.items():
        row = rows[name]
        ok((row["bytes"], row["size"], row["algorithm"], row["protocol"], row["calls"], row["kernels"]) ==
           (nbytes, RANKS, algorithm, protocol, RANKS * STEPS, RANKS * STEPS), f"{name}: its calls, each with a kernel", row)
        true = [k["end"] - k["start"] for k in r.kernels if f"_{name[4:]}_" in k["name"]]
        # CUPTI's clock is converted to ns
        ok(len(true) == row["kernels"] and abs(sum(true) - row["gpu_ns"]) <= 10 * len(true) and abs(min(true) - row["min_ns"]) <= 10,
           f"{name}: the time of its kernels", row, sum(true), min(true))
        speed = size * row["kernels"] / row["gpu_ns"] * 1e9
        ok(abs(row["algorithm_bytes_per_s"] / speed - 1) < 1e-9 and abs(row["bus_bytes_per_s"] / (speed * factor) - 1) < 1e-9 and
           abs(row["fastest_bus_bytes_per_s"] / (size * factor / row["min_ns"] * 1e9) - 1) < 1e-9, f"{name}: bandwidths as nccl-tests defines them", row)
    rows = r.ranks["tables"]["ranks"]
    ok([(row["rank"], row["pid"], row["collectives"]) for row in rows] == [(i, r.pids[i], len(SPEEDS) * STEPS) for i in range(RANKS)],
       "all collectives of all ranks are compared", rows)
    ok(not any("come" in f["text"] or "different" in f["text"] for f in r.ranks["findings"]), "no rank is absent", r.ranks["findings"])


def fused():
    r = Run("group", "-n", "2", "-s", str(STEPS), "-g")
    result = report(r.path, "nccl-api")
    rows = result["tables"]["speeds"]
    ok([(row["name"], row["bytes"], row["calls"], row["kernels"]) for row in rows] == [("ncclAllReduce", 6 << 18, 3 * 2 * STEPS, 2 * STEPS)] and
       "a group" in str(result["notes"]), "a group's calls in one kernel: the sum of their bytes, and the kernel once", rows, result["notes"])


def late():
    """Rank 5 is late by 20 ms in each second step."""
    r = Run("late", "-n", str(RANKS), "-s", str(STEPS), "-L", "5", "-e", "2")
    text, found = r.first()["text"], r.first()["figures"]
    kernels = collections.defaultdict(list)
    for k in sorted(r.kernels, key=lambda k: k["start"]):
        kernels[k["pid"]].append(k)
    starts = {rank: [k["start"] for k in kernels[pid]] for rank, pid in r.pids.items()}
    last = [max(starts, key=lambda rank, i=i: starts[rank][i]) for i in range(STEPS)]
    rows = {row["rank"]: row for row in r.ranks["tables"]["ranks"]}
    ok(found["rank"] == 5 and found["pid"] == r.pids[5], "the late rank is the first finding", text, found)
    ok(all(rows[rank]["last_collectives"] == last.count(rank) for rank in rows), "which rank was last, and how often", rows, last)
    for rank in rows:
        true = sum(max(s[i] for s in starts.values()) - starts[rank][i] for i in range(STEPS))
        ok(abs(rows[rank]["waited_ns"] - true) <= 20 * STEPS, f"rank {rank}: how long it waited for others", rows[rank]["waited_ns"], true)
    skew = r.ranks["tables"]["communicators"][0]
    true = sum(max(s[i] for s in starts.values()) - min(s[i] for s in starts.values()) for i in range(STEPS)) / STEPS
    ok(skew["hash"] == HASH and skew["by"] == "kernels" and abs(skew["skew_ns"] - true) <= 20, "the skew of arrivals", skew, true)
    summary = subprocess.run([SONDE, "report", r.path], capture_output=True, text=True, check=True).stdout
    ok(summary.startswith(f"rank 5 (fake_ranks {r.pids[5]}) makes the 7 other ranks wait"), "the summary states it first", summary[:2000])
    one = report(r.path, "ranks", "-p", str(r.pids[0]))
    ok("waited for another rank" in one["findings"][0]["text"] and one["findings"][0]["text"].startswith("Rank 0"), "what one rank alone shows",
       one["findings"])


def hang():
    """Rank 3 never comes to the collective of step 12."""
    r = Run("hang", "-n", str(RANKS), "-s", str(STEPS), "-H", "3", "-h", "12", hangs=True)
    found = r.first()
    ok(found["figures"]["rank"] == 3 and found["figures"]["collective"] == 13 and found["figures"]["absent"] == 1,
       "the rank that never came, and to what", found, r.ranks["findings"], r.messages)
    ok("collective 13 (ncclAllReduce, 4.00 MiB)" in found["text"] and "the 7 other ranks" in found["text"], "as a sentence", found["text"])
    tails = {f["pid"]: f["text"] for f in report(r.path, "gpu")["findings"] if f["kind"] == "gpu-ended"}
    ok(len(tails) == 4 and all(("ended no work in the last" in text and "1 launch had not ended, the first by ncclAllReduce" in text) if pid != r.pids[3] else
                     "had no work in the last" in text for pid, text in tails.items()), "GPUs that wait have work that had not ended", tails)
    summary = " ".join(subprocess.run([SONDE, "report", r.path], capture_output=True, text=True, check=True).stdout.split())
    ok(summary.startswith("rank 3 (fake_ranks") and "had not come to collective 13" in summary, "the summary states it first", summary[:2000])


def different():
    """Rank 6 calls ncclBroadcast where the others call ncclAllReduce."""
    r = Run("different", "-n", "8", "-s", str(STEPS), "-D", "6", "-h", "7")
    texts = [f["text"] for f in r.ranks["findings"]]
    ok(f"Ranks of communicator {HASH:#x} call different collectives: collective 8 is ncclAllReduce of 4.00 MiB in rank 0, and ncclBroadcast of "
       "4.00 MiB in rank 6." in texts, "ranks that call different collectives", texts)


def main():
    bandwidths()
    fused()
    late()
    hang()
    different()
    done()


main()

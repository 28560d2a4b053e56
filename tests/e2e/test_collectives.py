#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report ranks on calls of NCCL in traces that are written for this: recordings that begin at different collectives, ranks of several machines,
a rank that stays away, one that was not recorded, ranks that call different collectives.
test: smoke parallel"""
import json
import tempfile

from planted import make, say
from tap import done, ok

PROBES = ['meta_probe time=@0 number=1 family=5 name="ncclAllReduce" program="nccl_collective" section="-"',
          'meta_probe time=@0 number=2 family=5 name="ncclAllGather" program="nccl_collective" section="-"']
END = "meta_end time=@9 reason=END_SIGNAL"


def rank(number, size=2, first=0, end=40, late_ms=0, comm=0x1000, hash_of=0xabc, pid=0, function=lambda n: 1, nbytes=lambda n: 4096 * (n % 7 + 1)):
    """The calls of collectives [first, end) of a rank: the n-th 100 ms after the one before it, and late by late_ms"""
    pid = pid or 10 + number
    lines = [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="train"',
             f"nccl_communicator time=@0.5 pid={pid} tid={pid} comm={comm} rank={number} size={size} device={number} hash={hash_of} source=NCCL_FROM_MEMORY"]
    for n in range(first, end):
        at = 1 + n / 10 + late_ms / 1e3
        lines.append(f"nccl_collective probe={function(n)} pid={pid} tid={pid} start=@{at:.6f} time=@{at + 0.0001:.6f} comm={comm} count=1 bytes={nbytes(n)}")
    return lines


def ranks_of(folder, name, *ranks):
    return report(make(folder, name, [*PROBES, *(line for r in ranks for line in r), END], "nccl.schema.json", "proc,nccl"))


def report(*paths):
    """The texts of findings, the rows of ranks by their number, and the rows of communicators"""
    r = json.loads(say("report", *paths, "ranks", "--format", "json"))
    return [f["text"] for f in r["findings"]], {row["rank"]: row for row in r["tables"]["ranks"]}, r["tables"]["communicators"]


def sums(rows):
    """Collectives compared, those in which a rank was last, and ms for which it waited"""
    return {n: (r["collectives"], r["last_collectives"], round(r["waited_ns"] / 1e6)) for n, r in rows.items()}


def begins(folder):
    """Rank 1 is late by 30 ms, and its calls were recorded from a later or earlier one on."""
    for first in ((0, 0), (3, 0), (0, 3)):
        texts, rows, _ = ranks_of(folder, "begins", rank(0, first=first[0]), rank(1, first=first[1], late_ms=30))
        n = 40 - max(first)
        ok(sums(rows) == {0: (n, 0, 30 * n), 1: (n, n, 0)} and "different" not in str(texts) and
           texts[0].startswith(f"Rank 1 (train 11) is the last to call {n} of {n} "),
           f"recordings that begin at collectives {first}", rows, texts)
    _, rows, _ = ranks_of(folder, "even", rank(0), rank(1))
    ok(sums(rows) == {0: (40, 0, 0), 1: (40, 0, 0)}, "ranks that are never late", rows)


def communicators(folder):
    """Two communicators of the same two processes, and one of two other processes"""
    texts, rows, comms = ranks_of(folder, "comms", rank(0), rank(1, late_ms=30), rank(0, comm=0x2000, hash_of=0xdef),
                                  rank(1, comm=0x2000, hash_of=0xdef), rank(0, pid=30, hash_of=0x123), rank(1, pid=31, hash_of=0x123))
    ok(sorted((c["hash"], c["recorded"], c["collectives"], round(c["skew_ns"] / 1e6)) for c in comms) ==
       [(0x123, 2, 40, 0), (0xabc, 2, 40, 30), (0xdef, 2, 40, 0)], "communicators are compared by their hash", comms)


def absent(folder):
    """Rank 1 does not come to collective 21; 6 s later the trace ends. Then a rank that was not recorded, and one rank alone"""
    texts, _, _ = ranks_of(folder, "absent", rank(0, 4, end=60), rank(1, 4, end=20), rank(2, 4, end=60), rank(3, 4, end=60))
    ok(texts[0].startswith("rank 1 (train 11) makes the 3 other ranks wait") and
       "had not come to collective 21 (ncclAllReduce, 28.00 KiB) when the trace ended" in texts[0],
       "a rank that stays away", texts)
    texts, _, _ = ranks_of(folder, "late-end", rank(0, end=79), rank(1, end=78))
    ok(not any("come" in t for t in texts), "a rank that is at most as late as collectives are apart", texts)
    opened = [f"nccl_collective probe=1 pid={10 + n} tid={10 + n} start=@5 time=@9 flags=1 comm=0x1000 count=1 bytes=4" for n in range(2)]
    texts, _, _ = ranks_of(folder, "unrecorded", rank(0, 4), rank(1, 4), opened)
    ok(texts[0].startswith("2 recorded ranks of 4 had waited for 4.000 s in collective 41 (ncclAllReduce, 4 B) when the trace ended"),
       "ranks that wait for one that was not recorded", texts)
    texts, _, _ = ranks_of(folder, "all", rank(0), rank(1), opened)
    ok(not any("when the trace ended" in t for t in texts), "all ranks have come", texts)
    texts, _, _ = ranks_of(folder, "first", rank(0, 2), rank(1, 2, end=0))
    ok(texts[0].startswith("rank 1 (train 11)") and "had not come to collective 1 (" in texts[0], "a rank that has called none", texts)


def different(folder):
    texts, _, _ = ranks_of(folder, "different", rank(0), rank(1, function=lambda n: 2 if n == 9 else 1))
    ok("Ranks of communicator 0xabc call different collectives: collective 10 is ncclAllReduce of 12.00 KiB in rank 0, and ncclAllGather of "
       "12.00 KiB in rank 1." in texts, "different functions", texts)
    texts, _, _ = ranks_of(folder, "sizes", rank(0), rank(1, nbytes=lambda n: 8 if n == 9 else 4096 * (n % 7 + 1)))
    ok(any("ncclAllReduce of 8 B in rank 1" in t for t in texts), "different sizes", texts)


def machines(folder):
    """A trace of each machine"""
    paths = [make(folder, f"machine-{n}", [*PROBES, *rank(n, late_ms=30 * n), END], "nccl.schema.json", "proc,nccl") for n in range(2)]
    texts, rows, comms = report(*paths)
    ok(sums(rows) == {0: (40, 0, 1200), 1: (40, 40, 0)} and comms[0]["recorded"] == 2, "ranks of two machines", rows, comms)


with tempfile.TemporaryDirectory() as where:
    begins(where)
    communicators(where)
    absent(where)
    different(where)
    machines(where)
done()

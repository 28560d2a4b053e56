#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A million kernels through the shim: each is recorded once, with its correlation id, name, stream and times."""
# test: timeout=300 parallel
import array
import os
import struct

from shim_lib import CALLS, KERNELS, KINDS, Shimmed, versions
from tap import done, ok

MILLION = 1_000_000
ROOM = MILLION + 100_000  # correlation ids, which other calls have too
KERNEL, CALL, NAME, CLOCK, DROPPED = (KINDS.index(k) for k in ("kernel", "call", "name", "clock", "dropped"))


class Lean(Shimmed):
    """Reads records without creating a dict for each."""

    def finish(self, timeout=200):
        self.errors = self.child.communicate(timeout=timeout)[1]
        self.status = self.child.returncode
        return self


def truth_of(path):
    """({correlation id: (start, end, stream, name)}, {correlation id: thread of the call})"""
    start, end, stream = (array.array("Q", bytes(8 * (ROOM))) for _ in range(3))
    names, calls, number = [None] * (ROOM), array.array("Q", bytes(8 * (ROOM))), 0
    with open(path) as f:
        for line in f:
            kind, rest = line.split(" ", 1)
            if kind not in ("kernel", "call", "runtime"):
                continue
            e = dict(w.split("=", 1) for w in rest.split())
            c = int(e["correlation"])
            if kind != "kernel":
                # a call of libcuda within one of libcudart has its id, and is not recorded
                if e["traced"] == "1":
                    calls[c] = int(e["tid"])
                continue
            number += e["traced"] == "1"
            start[c], end[c], stream[c], names[c] = int(e["start"]), int(e["end"]), int(e["stream"]), e["name"]
    return number, start, end, stream, names, calls


def main():
    r = Lean(versions()[-1], "-n", "2000", "-k", "500", "-u", "1", "-s", "8", "-p", "4000", groups=KERNELS | CALLS, cupti="ppm=100")
    number, start, end, stream, names, calls = truth_of(r.truth_path)
    os.unlink(r.truth_path)
    ok(r.status == 0 and number == MILLION, "a million kernels ran, and CUPTI reported each", r.status, number, r.errors)
    seen, seen_calls, text = bytearray(len(names)), bytearray(len(names)), {}
    wrong, worst, error, dropped = [], 0, 0, 0
    with open(r.out, "rb") as f:
        data = f.read()
    os.unlink(r.out)
    pos = 0
    while pos < len(data):
        n, size = struct.unpack_from("<HI", data, pos + 6)
        at = pos + 24
        for _ in range(n):
            length, kind, tid, begin, stop = struct.unpack_from("<HHIQQ", data, at)
            if kind == KERNEL:
                name, s, c = struct.unpack_from("<Q16xII", data, at + 24)
                seen[c] += 1
                if text.get(name) != names[c] or s != stream[c]:
                    wrong.append((c, name, s))
                worst = max(worst, abs(begin - start[c]), abs(stop - end[c]))
            elif kind == CALL:
                c = struct.unpack_from("<I", data, at + 28)[0]
                seen_calls[c] += 1
                if tid != calls[c]:
                    wrong.append((c, tid))
            elif kind == NAME:
                text[struct.unpack_from("<Q", data, at + 24)[0]] = data[at + 32:at + length].split(b"\0")[0].decode()
            elif kind == CLOCK:
                error = max(error, struct.unpack_from("<Q", data, at + 32)[0])
            elif kind == DROPPED:
                dropped += struct.unpack_from("<Q", data, at + 24)[0]
            at += length
        pos += size
    launched = [c for c, name in enumerate(names) if name]
    ok(all(seen[c] == 1 for c in launched) and sum(seen) == MILLION and not dropped, "each is recorded exactly once",
       sum(seen), dropped, [c for c in launched if seen[c] != 1][:5])
    ok(all(seen_calls[c] == 1 for c in launched) and not wrong, "each has its name, stream, call and that call's thread", wrong[:5])
    ok(worst <= error + 3, f"times agree within {error + 3} ns, the clock's error", worst)
    print(f"# off by {worst} ns at most")


main()
done()

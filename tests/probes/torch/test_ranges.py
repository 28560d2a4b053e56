#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record_function(): ranges that never end keep no later ones out, and what is lost by them or by ranges nested too deep is counted.
test: timeout=300 parallel"""
import collections

from tap import done, ok
from torch_env import Recording, python

ROOM = 16  # TORCH_RANGES
LEAKED, LATER, DEEP = 20, 5, 24

PROGRAM = f"""
import threading
import torch
from torch.autograd.profiler import record_function

def nest(depth):
    if depth < {DEEP}:
        with record_function(f"deep {{depth}}"):
            nest(depth + 1)

with record_function("before"):
    torch.ones(1)
print("ready", flush=True)
input()
leaked = [torch.ops.profiler._record_function_enter_new(f"leaked {{i}}") for i in range({LEAKED})]
for _ in range({LATER}):
    with record_function("outer"):
        with record_function("inner"):
            torch.ones(1)
thread = threading.Thread(target=nest, args=(0,))
thread.start()
thread.join()
print("done", flush=True)
input()
"""


def main():
    r = Recording([python(), "-c", PROGRAM], "--torch=all")
    ranges = sorted((e for e in r.trace.events("torch_range") if e["pid"] == r.pid), key=lambda e: e["start"])
    names = collections.Counter(e["name"].split()[0] for e in ranges)
    ok(names["outer"] == LATER and names["inner"] == LATER and not names["leaked"], "ranges after those that never end are recorded", names)
    pairs = [e for e in ranges if e["name"] in ("outer", "inner")]
    ok(all(o["name"] == "outer" and i["name"] == "inner" and o["start"] < i["start"] < i["time"] < o["time"]
           for o, i in zip(pairs[::2], pairs[1::2])), "each has its own name, start and end", pairs)
    deep = [e["name"] for e in ranges if e["name"].startswith("deep")]
    ok(deep == [f"deep {n}" for n in range(DEEP - ROOM, DEEP)], "of ranges nested too deep the inner ones are recorded", deep)
    lost = sum(e["count"] for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["reason_name"] == "LOSS_DEPTH")
    ok(lost == LEAKED + 2 - ROOM + DEEP - ROOM, "each range that was dropped is counted", lost)
    done()


main()

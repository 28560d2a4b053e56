#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 gate
"""
Every wait for the GIL is recorded once, with its time and the thread whose drop ended
it, in each CPython. Compared with the log of the preloaded truth library.
"""
import bisect
import collections

import gil_lib
import tap

SECONDS = 1.5


def drops_while_held(r):
    """The drops by a thread while, by its own log, it held the GIL"""
    held, wrong = collections.defaultdict(list), []
    for tid, taken, dropped in r.holds:
        held[tid].append((taken, dropped))
    for times in held.values():
        times.sort()
    for d in r.drops:
        times = held.get(d["tid"], [])
        i = bisect.bisect_right(times, (d["time"], 1 << 62)) - 1
        if i >= 0 and times[i][0] < d["time"] < times[i][1]:
            wrong.append((d["tid"], d["time"], times[i]))
    return wrong


def check_process(name, r):
    wrong = gil_lib.compare_counts(r)
    tap.ok(r.truth_waits and not wrong, "%s: as many waits, as long" % name, "\n".join(wrong + [r.messages]))
    numbers = collections.defaultdict(list)
    for w in r.waits:
        numbers[w["tid"]].append(w["number"])
    tap.ok(all(sorted(n) == list(range(1, len(n) + 1)) for n in numbers.values()),
           "%s: waits are numbered from 1 in each thread" % name)
    tap.ok(r.status == 0 and not r.losses, "%s: nothing lost" % name, "%s %s" % (r.losses, r.messages))


def check_python(python):
    # Checked before the next recording starts, in which tests/vm may end the test
    spin = gil_lib.record(python, place, "spin", SECONDS, 3)
    check_process("%s, spinning in Python" % python.name, spin)
    hold = gil_lib.record(python, place, "hold", SECONDS, 3)
    check_process("%s, holding in C" % python.name, hold)
    a = gil_lib.add(gil_lib.attribution(spin), gil_lib.attribution(hold))
    tap.note("%s: %s" % (python.name, gil_lib.figures(a)))
    tap.ok(gil_lib.good(a), "%s: who dropped it" % python.name, "\n".join(map(str, a.examples[:5])))
    late = drops_while_held(hold)
    tap.ok(hold.drops and not late, "%s: no drop while the dropper has it" % python.name, late[:5])


with gil_lib.Workplace() as place:
    gil_lib.each_python("waits", check_python)
tap.done()

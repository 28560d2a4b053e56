#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
--gil=full records every hold of the GIL, and how long drop_gil waited for a requested switch, in each
CPython. Both are compared with the log of the preloaded truth library.
"""
import statistics

import gil_lib
import tap
from gil_lib import OPEN, PROBES_NS

SECONDS = 1.2
NO_DURATION = 4  # enum event_flags


def check_holds(name, r):
    gils = {h["gil"] for h in r.full["gil_hold"]}
    truth = gil_lib.true_holds([s for s in r.truth_drops if s[1] > r.live], gils)
    for gil in sorted(gils):
        mine = sorted((h["time"], h["tid"], h["start"], h["flags"]) for h in r.full["gil_hold"] if h["gil"] == gil)
        # the last one may be open at the end in either record
        done = [h for h in mine if not h[3] & OPEN]
        true = [h for h in truth[gil] if h[2]]
        tap.ok(len(done) > 2 and [h[1] for h in done] == [h[0] for h in true],
               "%s: takes and drops, each by the same thread in the same order" % name, "%d, truly %d" % (len(done), len(true)))
        both = [(before[2], a, b) for before, a, b in zip([(0, 0, 0), *true], done, true) if b[1] and not a[3] & NO_DURATION]
        # every hold since attaching was recorded
        known = sum(1 for b in true if b[1])
        # sonde's probes are where the interpreter calls the functions in which the library reads the clock
        wrong = [x for x in both if not x[0] <= x[1][2] <= x[2][1] <= x[1][0] <= x[2][2]]
        extra = statistics.median(abs(a[0] - a[2] - b[2] + b[1]) for _, a, b in both) if both else 0
        tap.ok(len(both) == known and not wrong and extra <= PROBES_NS, "%s: holds begin and end when they truly do" % name,
               "%d of %d, %d ns off in the median" % (len(both), known, extra), wrong[:3])


def check_switches(name, r):
    """The waits for a forced switch"""
    mine = gil_lib.by_thread((s["tid"], s["start"], s["time"]) for s in r.full["gil_switch"] if not s["flags"] & OPEN)
    truth = gil_lib.by_thread(s[:3] for s in r.truth_switches if s[1] > r.live)
    counts = {tid: (len(mine[tid]), len(truth[tid])) for tid in set(mine) | set(truth)}
    if not counts:
        return tap.skip("%s: waits for a forced switch" % name, "the machine was so busy that no thread had to wait for one")
    tap.ok(all(a == b for a, b in counts.values()), "%s: waits for a forced switch" % name, counts)
    wrong = [x for tid in truth for x in gil_lib.outside_bracket(mine[tid], truth[tid])]
    extra = statistics.median(a[1] - a[0] - b[1] + b[0] for tid in truth for a, b in zip(mine[tid], truth[tid]))
    tap.ok(not wrong and extra <= PROBES_NS, "%s: their times" % name, "%d ns longer in the median" % extra, wrong[:3])


def check_python(python):
    spin = gil_lib.record(python, place, "spin", SECONDS, 3, options=["--gil=full"])
    hold = gil_lib.record(python, place, "hold", SECONDS, 3, options=["--gil=full"])
    check_holds("%s, spinning in Python" % python.name, spin)
    check_holds("%s, holding in C" % python.name, hold)
    check_switches("%s, spinning in Python" % python.name, spin)
    wrong = gil_lib.compare_counts(hold)
    a = gil_lib.add(gil_lib.attribution(spin), gil_lib.attribution(hold))
    tap.ok(not wrong and gil_lib.good(a) and a.wrong == 0, "%s: waits, and who dropped it" % python.name,
           "%s %s" % (wrong, gil_lib.figures(a)))
    tap.ok(hold.status == 0 and not hold.losses + spin.losses, "%s: nothing lost" % python.name, hold.messages)


with gil_lib.Workplace() as place:
    gil_lib.each_python("holds", check_python)
tap.done()

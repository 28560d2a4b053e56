#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
If take_gil's call can't be probed, libc's function is probed instead: the same waits are
recorded, and no waits of other callers of the function.

Both probes run within the waits that the truth library times, so that these include the BPF programs'
run time, which the kernel counts (kernel.bpf_stats_enabled).
"""

import bpf_stats

import gil_lib
import tap
from other_work import again_if_disturbed


def outside(r):
    """The number of sonde's waits that are not within the same wait of the truth library"""
    truth = gil_lib.by_thread((w[0], w[1], w[2]) for w in r.truth_waits)
    mine = gil_lib.by_thread((w["tid"], w["start"], w["time"]) for w in r.waits)
    return sum(a[0] < b[0] or a[1] > b[1] for tid in truth for a, b in zip(mine.get(tid, []), truth[tid]))


def record(python):
    """(the recording, run time of sonde's programs within the waits)"""
    with bpf_stats.Counted("gil_libc_enter", "gil_libc_leave") as programs:
        r = gil_lib.record(python, place, "spin", 1.2, 3, "no-gil-pattern", on_live=programs.find)
        return r, programs.run_time_ns()


def check_python(python):
    r, inside_ns = again_if_disturbed(python.name, lambda: record(python), lambda recorded: gil_lib.compare_counts(*recorded))
    wrong = gil_lib.compare_counts(r, inside_ns)
    if outside(r):
        wrong.append("%d waits begin before or end after the true ones" % outside(r))
    tap.ok(r.truth_waits and inside_ns and not wrong, "%s: as many waits, as long, by libc" % python.name,
           "\n".join(wrong + [r.messages]))
    a = gil_lib.attribution(r)
    tap.ok(gil_lib.good(a), "%s: who dropped it, by libc" % python.name, gil_lib.figures(a))
    tap.ok(r.status == 0 and not r.losses, "%s: nothing lost, by libc" % python.name, r.messages)


with gil_lib.Workplace() as place:
    gil_lib.each_python("waits by libc", check_python)
tap.done()

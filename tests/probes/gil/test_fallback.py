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


def record(python):
    """(the recording, run time of sonde's programs within the waits)"""
    with bpf_stats.Counted("gil_libc_enter", "gil_libc_leave") as programs:
        r = gil_lib.record(python, place, "spin", 1.2, 3, "no-gil-pattern", on_live=programs.find)
        return r, programs.run_time_ns()


def check_python(python):
    r, within_ns = record(python)
    wrong = gil_lib.compare_counts(r, within_ns)
    tap.ok(r.truth_waits and within_ns and not wrong, "%s: as many waits, as long, by libc" % python.name,
           "\n".join(wrong + [r.messages]))
    a = gil_lib.attribution(r)
    tap.ok(gil_lib.good(a), "%s: who dropped it, by libc" % python.name, gil_lib.figures(a))
    tap.ok(r.status == 0 and not r.losses, "%s: nothing lost, by libc" % python.name, r.messages)


with gil_lib.Workplace() as place:
    gil_lib.each_python("waits by libc", check_python)
tap.done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
Where take_gil's own call can't be probed, libc's function is: the same waits come
out, and those of others that use the function do not.
"""
import gil_lib

tap = gil_lib.Tap()


def check_python(python):
    r = gil_lib.record(python, place, "spin", 1.2, 3, "gil-pattern")
    wrong = gil_lib.compare_counts(r)
    tap.ok(r.truth_waits and not wrong, "%s: as many waits, as long, by libc" % python.name,
           "\n".join(wrong + [r.messages]))
    a = gil_lib.attribution(r)
    tap.ok(gil_lib.good(a), "%s: who dropped it, by libc" % python.name, gil_lib.figures(a))
    tap.ok(r.status == 0 and not r.losses, "%s: nothing lost, by libc" % python.name, r.messages)


with gil_lib.Workplace() as place:
    gil_lib.each_python(tap, "waits by libc", check_python)
tap.end()

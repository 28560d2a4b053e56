#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints a trace as text: one event per line with every field, in the format of tests/unit/trace_support.h."""
import sys

from sonde_trace import Trace


def quote(text):
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\x%02x" % b for b in text)


def main():
    trace = Trace(sys.argv[1], verify="--verify" in sys.argv)
    for event, row in trace.rows():
        parts = [event.name]
        for f in event.fields:
            v = row[f.name]
            parts.append("%s=%s" % (f.name, quote(v) if f.is_text else "%.17g" % v if f.type == "float" else "%d" % v))
        print(" ".join(parts))
    for why in trace.damaged:
        print("damaged:", why, file=sys.stderr)
    return 1 if trace.damaged else 0


if __name__ == "__main__":
    sys.exit(main())

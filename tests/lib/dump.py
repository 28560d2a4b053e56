#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace as text, an event a line with every field, as tests/unit/trace_support.h writes it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
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

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The job of import_heavy: adds up ten numbers."""
import os
import sys
import time

start = time.perf_counter_ns()
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_libraries():
    import fastapi  # noqa: F401  # cause
    import flask  # noqa: F401  # cause
    import numpy  # noqa: F401  # cause
    import requests  # noqa: F401  # cause


def main():
    load_libraries()
    from lib import incident
    incident.Clock("imports").add_since(start)
    print(sum(range(10)), file=sys.stderr)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service with a timer signal left from a debugging session: its handler formats the stack, and sets the timer again."""
import os
import signal
import sys
import traceback

from lib import incident

MANIFEST = {
    "title": "a timer signal whose handler computes",
    "cause": "signal handler",
    "words": [["signal", "CPU", "comput"]],
    "must": "cause",
    "clock": "handles",
    "packages": [],
}
handles = incident.Clock("handles")
latest = []


def on_timer(number, frame):
    with handles:
        latest[:] = [traceback.StackSummary.extract(traceback.walk_stack(frame), capture_locals=True).format()]  # cause
    signal.setitimer(signal.ITIMER_REAL, 0.002)


def answer(depth, request):
    return request % 7 if not depth else answer(depth - 1, request)


def service():
    signal.signal(signal.SIGALRM, on_timer)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    print(flush=True)
    request = 0
    while True:
        request += 1
        answer(20, request)


def main():
    if sys.argv[1:]:
        service()
    incident.clocks_folder()
    incident.again(os.path.abspath(__file__), "service")
    incident.serve(__file__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server that starts a thread for each of its tiny tasks, and waits for it."""
import threading

from lib import incident

MANIFEST = {
    "title": "a new thread for each tiny task",
    "cause": "thread start",
    "words": [["thread's", "CPU", "GIL", "result"]],
    "must": "cause",
    "clock": "tasks",
    "packages": [],
}
tasks = incident.Clock("tasks")


def check_sum(numbers, out):
    out.append(sum(numbers))


def run_task(numbers):
    out = []
    with tasks:
        thread = threading.Thread(target=check_sum, args=(numbers, out))
        thread.start()  # cause
        thread.join()  # cause
    return out


def serve_tasks():
    numbers = list(range(100))
    while True:
        run_task(numbers)


def main():
    incident.in_background(serve_tasks)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

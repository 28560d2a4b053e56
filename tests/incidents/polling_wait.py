# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that waits for each job's result by asking for it every 100 ms, though the job is done after 5 ms."""
import concurrent.futures
import time

from lib import incident

MANIFEST = {
    "title": "a result that is polled with sleeps",
    "cause": "sleep",
    "words": [["slept", "sleep"]],
    "clock": "sleeps",
    "packages": [],
}
pool = concurrent.futures.ThreadPoolExecutor(2)
sleeps = incident.Clock("sleeps")


def run_job(number):
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        number = (number * 31 + 7) % 1_000_003
    return number


def wait_for(job):
    while not job.done():
        with sleeps:
            time.sleep(0.1)  # cause
    return job.result()


def client():
    number = 0
    while True:
        number = wait_for(pool.submit(run_job, number))


def main():
    incident.in_background(client)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

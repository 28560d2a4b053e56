# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A worker that finds its next job by a listing of a folder with 20,000 files, each of which it stats."""
import os

from lib import incident

MANIFEST = {
    "title": "a folder of 20,000 files listed for each job",
    "cause": "system calls",
    "words": [["system call", "syscall", "kernel", "CPU", "comput", "stat", "folder", "directory"]],
    "must": "cause",
    "clock": "lists",
    "packages": [],
}
lists = incident.Clock("lists")


def oldest_job(spool):
    with lists:
        return min(os.scandir(spool), key=lambda job: job.stat().st_mtime_ns).path  # cause


def work(spool):
    while True:
        os.utime(oldest_job(spool))
        sum(range(20_000))


def main():
    spool = incident.folder()
    for number in range(20_000):
        open(f"{spool}/job{number}", "w").close()
    incident.in_background(work, spool)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

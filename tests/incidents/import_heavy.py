# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A scheduler that starts a process for each job, and a job that imports for longer than it works."""
import os
import subprocess
import sys

from lib import incident

MANIFEST = {
    "title": "import-heavy start",
    "cause": "imports",
    "words": [["import"]],
    "must": "cause",
    "clock": "imports",
    "share": "sum",
    "packages": ["numpy", "flask", "requests", "fastapi"],
    "files": ["lib/report_job.py"],
}


def run_job():
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib/report_job.py")], check=True)


def schedule():
    while True:
        run_job()


def main():
    incident.clocks_folder()
    incident.in_background(schedule)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

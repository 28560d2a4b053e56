# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Celery worker whose task searches for duplicates in a list, each time from its start."""
import os
import sys

import celery

from lib import incident

MANIFEST = {
    "title": "Celery task that computes",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "must": "cause",
    "clock": "computes",
    "packages": ["celery", "redis"],
    "programs": ["redis-server"],
}
app = celery.Celery("celery_cpu", broker=f"redis://127.0.0.1:{os.environ.get('INCIDENT_REDIS', 6379)}/0")
computes = incident.Clock("computes")


def is_known(seen, address):
    for other in seen:
        if other == address:  # cause
            return True
    return False


@app.task(ignore_result=True)
def deduplicate(addresses):
    seen = []
    with computes:
        for number in range(addresses):
            if not is_known(seen, f"user{number}@example.org"):
                seen.append(f"user{number}@example.org")


def main():
    os.environ["INCIDENT_REDIS"] = str(incident.redis_server())
    app.conf.broker_url = f"redis://127.0.0.1:{os.environ['INCIDENT_REDIS']}/0"
    for _ in range(2000):
        deduplicate.delay(1500)
    incident.start(sys.executable, "-m", "celery", "--workdir", os.path.dirname(__file__), "-A", "celery_cpu", "worker", "-c", 1, "-l", "warning",
                   "--without-gossip", "--without-mingle")
    incident.serve(__file__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""numpy: four Python threads multiply matrices, and each multiplication also uses OpenBLAS's eight threads."""
import os
import threading
import time

os.environ["OPENBLAS_NUM_THREADS"] = "8"
import numpy as np  # noqa: E402

from lib import incident  # noqa: E402

MANIFEST = {
    "title": "OpenBLAS threads times Python threads",
    "cause": "too many threads for the CPUs",
    "words": [["CPU", "cores"]],
    "clock": "lost",
    "packages": ["numpy"],
}
lost = incident.Clock("lost")


def score(users, items):
    start, cpu = incident.now(), time.thread_time_ns()
    result = users @ items  # cause
    lost.add_lost(start, cpu)
    return result.max()


def work(seed):
    random = np.random.default_rng(seed)
    users, items = random.random((400, 400)), random.random((400, 400))
    while True:
        score(users, items)


def main():
    for seed in range(4):
        threading.Thread(target=work, args=(seed,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()

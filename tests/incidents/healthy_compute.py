# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two processes that compute on one CPU each and share nothing, which saturates a machine with two CPUs."""
import multiprocessing

from lib import incident

MANIFEST = {
    "title": "nothing: a balanced job that computes",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "fsync", "condition", "quota", "throttl", "starv", "straggl", "affinity", "pinned", "sleep"],
    "packages": [],
}


def simulate(seed):
    state = seed
    while True:
        for _ in range(100_000):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)


def main():
    for seed in range(2):
        multiprocessing.Process(target=simulate, args=(seed,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()

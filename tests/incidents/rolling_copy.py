# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A monitor that keeps the latest million samples in an array, which it copies for each new sample."""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

from lib import incident  # noqa: E402

MANIFEST = {
    "title": "numpy, `np.append` for each sample",
    "cause": "CPU",
    "words": [["CPU", "comput", "cop", "memory"]],
    "must": "cause",
    "clock": "copies",
    "packages": ["numpy"],
}
copies = incident.Clock("copies")


def add_sample(window, value):
    with copies:
        return np.append(window[1:], value)  # cause


def monitor():
    window, number = np.zeros(1_000_000), 0
    while True:
        number += 1
        window = add_sample(window, number * 0.5)
        sum(range(3000))


def main():
    incident.in_background(monitor)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

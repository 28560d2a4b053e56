# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A training loop in numpy that writes a checkpoint every 20 steps and waits until it is on the disk."""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

from lib import incident  # noqa: E402

MANIFEST = {
    "title": "checkpoint by fsync every 20 steps",
    "cause": "disk",
    "words": [["disk", "fsync"]],
    "clock": "saves",
    "packages": ["numpy"],
}
saves = incident.Clock("saves")


def save_checkpoint(path, weights):
    with open(path + ".new", "wb") as f:
        weights.tofile(f)
        with saves:
            os.fsync(f.fileno())  # cause
    os.replace(path + ".new", path)


def step(weights, random):
    rows = random.integers(0, len(weights), 64)
    batch = weights[rows]
    weights[rows] -= 0.001 * (batch @ (batch.T @ batch - np.eye(batch.shape[1])))


def train(path):
    random = np.random.default_rng(1)
    weights, count = random.random((20_000, 200)), 0
    while True:
        step(weights, random)
        count += 1
        if count % 20 == 0:
            save_checkpoint(path, weights)


def main():
    incident.in_background(train, os.path.join(incident.folder(incident.disk()), "weights"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()

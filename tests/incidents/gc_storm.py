# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A parser that makes many small objects that refer to each other, with a collection every hundred objects."""
import gc
import time

from lib import incident

MANIFEST = {
    "title": "GC storm by allocation",
    "cause": "GC",
    "words": [["GC", "garbage", "collect"]],
    "clock": "collects",
    "packages": [],
}
collects = incident.Clock("collects")


class Node:
    def __init__(self, parent):
        self.parent, self.children, self.attributes = parent, [], {}


def parse(depth, parent):
    node = Node(parent)  # cause
    if depth:
        node.children = [parse(depth - 1, node) for _ in range(4)]  # cause
    return node


def documents():
    recent = []
    while True:
        recent = [*recent[-20:], parse(5, None)]
        time.sleep(0.001)


def measure(phase, info):
    if phase == "start":
        collects.__enter__()
    else:
        collects.__exit__()


def main():
    # "keeps the memory low", as a comment in such programs often says
    gc.set_threshold(100, 2, 2)
    gc.callbacks.append(measure)
    incident.in_background(documents)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds trees with cycles for some seconds of CPU time; at the end prints the CPU time that it took in all, and in collections, by gc.callbacks."""
import gc
import os
import sys
import time

spent = [0.0, 0.0]


class Node:
    def __init__(self, parent):
        self.parent, self.children = parent, []


def build(depth, parent):
    node = Node(parent)
    if depth:
        node.children = [build(depth - 1, node) for _ in range(4)]
    return node


def measure(phase, info):
    if phase == "start":
        spent[1] = time.process_time()
    else:
        spent[0] += time.process_time() - spent[1]


def main():
    gc.set_threshold(200, 5, 5)
    gc.callbacks.append(measure)
    print("ready", flush=True)
    sys.stdin.readline()
    spent[0], begin, recent = 0.0, time.process_time(), []
    while time.process_time() < begin + float(sys.argv[1]):
        recent = recent[-20:] + [build(5, None)]
        for _ in range(20000):
            pass
    print(time.process_time() - begin, spent[0], flush=True)
    sys.stdin.readline()
    # the interpreter's own last collection is not measured
    os._exit(0)


main()

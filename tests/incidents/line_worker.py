# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that passes each text to a helper process through pipes, line by line, and waits for its answer; the helper is slow."""
import os
import subprocess
import sys

from lib import incident

MANIFEST = {
    "title": "a slow helper process behind pipes",
    "cause": "peer",
    "words": [["another process", "pipe", "peer"]],
    "clock": "answers",
    "packages": [],
}
answers = incident.Clock("answers")


def stem(word):
    total = 0
    for n in range(400_000):
        total += n * len(word) % 7  # cause
    return str(total)


def helper():
    for line in sys.stdin:
        print(stem(line), flush=True)


def translate(child, word):
    with answers:
        child.stdin.write(word + "\n")
        child.stdin.flush()
        return child.stdout.readline()  # waits


def translate_forever():
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "helper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    incident.at_end(child.kill)
    while True:
        translate(child, "houses")
        sum(range(20_000))


def main():
    if sys.argv[1:]:
        return helper()
    incident.in_background(translate_forever)
    return incident.serve(__file__)


if __name__ == "__main__":
    main()

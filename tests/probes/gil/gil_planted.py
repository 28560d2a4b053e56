# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits for the GIL with planted causes. gil_planted.py SCENE SECONDS: prints "ready", waits for a line, and prints the log of each
function: "log FUNCTION TID [(taken, dropped, back), ...]", see built/gil_plant.c."""
import json
import re
import sys
import threading
import time

import gil_plant

scene, seconds = sys.argv[1], float(sys.argv[2])
logs = []


def log(name, turns):
    logs.append((name, threading.get_native_id(), turns))


# one function holds the GIL, two others wait for it
def keeper():
    log("keeper", gil_plant.turns(seconds, 8000, 1000, 0))


def first_victim():
    log("first_victim", gil_plant.turns(seconds, 200, 2000, 0))


def second_victim():
    log("second_victim", gil_plant.turns(seconds, 200, 3100, 0))


# three holders with shares 60/30/10, and one waiter
def sixty():
    log("sixty", gil_plant.turns(seconds, 12000, 500, 0))


def thirty():
    log("thirty", gil_plant.turns(seconds, 6000, 500, 0))


def ten():
    log("ten", gil_plant.turns(seconds, 2000, 500, 0))


def sufferer():
    log("sufferer", gil_plant.turns(seconds, 20, 700, 0))


# C code that sleeps with the GIL for 200 ms
def in_c():
    log("in_c", gil_plant.turns(seconds, 200000, 30000, 0))


# C code that computes with the GIL for 200 ms, in an exported function
def in_named_c():
    log("in_named_c", gil_plant.turns(seconds, 200000, 30000, 2))


# C code of the interpreter, without symbol in a stripped one
def in_regex():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        re.match("(a+)+b", "a" * 20)
    log("in_regex", [])


def outside():
    log("outside", gil_plant.turns(seconds, 50, 1000, 0))


# a convoy
def convoy():
    log("convoy", gil_plant.turns(seconds, 800, 200, 0))


# short I/O beside pure Python that computes
def crunch():
    end = time.monotonic() + seconds
    x = 0
    while time.monotonic() < end:
        for i in range(1000):
            x += i
    log("crunch", [])


def short_io():
    log("short_io", gil_plant.turns(seconds, 20, 1000, 0))


SCENES = {
    "known": [keeper, first_victim, second_victim],
    "three": [sixty, thirty, ten, sufferer],
    "long": [in_c, outside],
    "named": [in_named_c, outside],
    "regex": [in_regex, outside],
    "convoy": [convoy] * 8,
    "io": [crunch, short_io],
}

threads = [threading.Thread(target=f) for f in SCENES[scene]]
print("ready", flush=True)
sys.stdin.readline()
for t in threads:
    t.start()
for t in threads:
    t.join()
for name, tid, turns in logs:
    print("log", name, tid, json.dumps(turns))

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""Five programs of tests/incidents that need no package: the first lines of the report name the cause."""
import os

ROOT = os.environ["ROOT"]
NAMES = ("condition_rare", "file_lock", "gc_storm", "lock_reload", "healthy_pool")
LEAST = 3  # of the four with a cause; another process of the machine may occupy one of the three lines

run = os.path.join(ROOT, "tests", "incidents", "run.py")
os.execv(run, [run, "--no-install", "--busy", "--least", str(LEAST), *NAMES])

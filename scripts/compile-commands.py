#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Turns what `make -nB` prints into a compilation database (clangd, clang-tidy)."""
import json
import os
import shlex
import sys

entries = []
for line in sys.stdin:
    try:
        words = shlex.split(line)
    except ValueError:
        continue
    if "-c" in words and words[-2:-1] == ["-o"]:
        entries.append({"directory": os.getcwd(), "arguments": words, "file": words[words.index("-c") + 1]})
json.dump(entries, sys.stdout, indent=1)

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""test_blame.py with --gil=full, which records every hold of the GIL."""
import gil_blame
import gil_lib

gil_blame.run(lambda name: name in gil_lib.REQUIRED, ["--gil=full"])

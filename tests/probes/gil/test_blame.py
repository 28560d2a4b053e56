#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""Which code made which code wait for the GIL, against planted causes, in each CPython."""
import gil_blame

gil_blame.run(lambda name: True, [])

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=400
"""`report gil` attributes waits for the GIL to the planted holders, in each CPython."""
import gil_blame

gil_blame.run(lambda name: True, [])

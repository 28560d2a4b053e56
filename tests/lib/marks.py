# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables that programs write into the docs."""
import os


def write_between_marks(path, key, text):
    """Replaces the text between `<!-- KEY -->` and `<!-- /KEY -->` in FILE, or the whole file if it has no such marks."""
    begin, end, old = f"<!-- {key} -->\n", f"<!-- /{key} -->\n", ""
    if os.path.exists(path):
        with open(path) as f:
            old = f.read()
    if begin in old and end in old:
        text = old[:old.index(begin)] + begin + text + old[old.index(end):]
    with open(path, "w") as f:
        f.write(text)

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""doc-output.py [--check] SONDE: what commands print, in README.md and docs/*.md.

A block of code that begins with `$ sonde ` is this command and its output. The command is run by a shell in the tree's folder, so it may
end in `| head -n 9`. It reads only traces that are in the tree, so that it prints the same everywhere. Without --check the blocks are
rewritten; with it the differences are printed, and are an error.
"""
import difflib
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"^```\n\$ (sonde .*)\n(?:.*\n)*?```$", re.M)


def output(sonde, command):
    done = subprocess.run(["/bin/bash", "-c", 'sonde() { "$SONDE" "$@"; }; ' + command], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, encoding="utf-8",
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "SONDE": os.path.abspath(sonde)})
    if done.stderr:
        sys.exit(f"doc-output.py: {command}: {done.stderr}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def main():
    args = sys.argv[1:]
    check = args[:1] == ["--check"]
    sonde = args[check]
    blocks, stale = 0, False
    for path in ["README.md", *sorted(glob.glob("docs/*.md", root_dir=ROOT))]:
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            text = f.read()
        new, n = BLOCK.subn(lambda m: f"```\n$ {m[1]}\n{output(sonde, m[1])}```", text)
        blocks += n
        if new == text:
            continue
        stale = True
        if check:
            sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), new.splitlines(True), path, "what sonde prints"))
        else:
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as f:
                f.write(new)
    print(f"{blocks} blocks")
    sys.exit(check and stale)


main()

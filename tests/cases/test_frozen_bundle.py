#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
# case: right | py-spy, Austin: a program of PyInstaller or zipapp, with relative names or in an archive |
"""The first line names the program's own function and its line, and no function of the standard library that it calls."""
import os
import subprocess

from case import FOLDER, finish, record, say, script, start
from pip_packages import install
from tap import ok, skip

SOURCE = """import json, os
def report(big):
    return json.JSONEncoder(indent=1).encode(big)
def main():
    big = [{"n": i, "s": "x%d" % i} for i in range(200000)]
    print("ready", os.getpid(), flush=True)
    while True:
        report(big)
main()
"""


def check(program, place, name):
    # --onefile unpacks the program, and runs it in a child
    pid = program.lines[-1].split()[1]
    first = say("report", record("-d", "3", "-p", pid, name=name)).split("\n")[0]
    ok(f"in report ({place}:3)" in first, name, first)
    program.terminate()
    program.wait()


script("app/__main__.py", SOURCE)
subprocess.run(["/usr/bin/python3", "-m", "zipapp", os.path.join(FOLDER, "app"), "-o", os.path.join(FOLDER, "app.pyz")], check=True)
check(start("/usr/bin/python3", os.path.join(FOLDER, "app.pyz"), until="ready"), "__main__.py", "zipapp")
python = os.path.join(FOLDER, "venv", "bin", "python")
if install(python, "pyinstaller"):
    subprocess.run([python, "-m", "PyInstaller", "--onefile", script("bundled.py", SOURCE)], cwd=FOLDER, capture_output=True, check=True)
    check(start(os.path.join(FOLDER, "dist", "bundled"), until="ready"), "bundled.py", "PyInstaller")
else:
    skip("PyInstaller", "it can't be installed")
finish()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits
"""A tracer of Python functions comes and leaves 200 times while threads call them: each time all functions are as before."""
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
import sonde_cli
from functions_lib import HERE
from tap import done, ok

ROUNDS = {"3.11 debian": 200, "3.13 pyenv": 200}


def start(python):
    env = dict(os.environ, SHIM=os.path.join(sonde_cli.B, "libsonde-cupti.so"))
    rounds = ROUNDS.get(python.name, 20)
    programs.append((python, rounds, subprocess.Popen([python.exe, os.path.join(HERE, "rounds_work.py"), str(rounds)], env=env,
                                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))


def run(python):
    if python.root != "/":
        return
    start(python)
    _, rounds, program = programs[-1]
    output = program.communicate()[0]
    ok(output == "ok\n" and not program.returncode, f"{rounds} rounds, {python.name}", output, program.returncode)


programs = []
gil_lib.each_python("rounds", run)
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""torch.compile and pickle work on functions that are traced, also in CPython 3.11, where these have a changed code object."""
import os
import subprocess
import tempfile

import sonde_cli
from functions_lib import HERE, REFUSED, Calls, options, record
from tap import done, ok, skip_all

PYTHON = os.path.join(sonde_cli.B, "venv", "bin", "python")
if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
    skip_all("build/venv has no PyTorch")
path = os.path.join(tempfile.mkdtemp(prefix="sonde-functions-compile-"), "x.sonde")
with subprocess.Popen([PYTHON, os.path.join(HERE, "compile_work.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
    def step():
        print("go", file=program.stdin, flush=True)
        return program.stdout.readline().strip()

    program.stdout.readline()
    sonde = record(path, "-t", "functions", "--inject", "-p", str(program.pid), *options(["inner", "outer"]), names=["inner", "outer"])
    ok(step() == "False", "pickle takes a function that has a changed code object, and its copy works")
    ok(step() == "True", "torch.compile finds the code as it was, and compiles it")
    step()
    sonde.end()
    ok(program.wait() == 0, "the program ends well", program.returncode)
calls = Calls(path)
# the copy calls the function `inner` of the program
ok(dict(calls.counts) == {"__main__:inner": 1} and calls.names(REFUSED) == {"__main__:inner", "__main__:outer"},
   "both are refused then, with the reason", dict(calls.counts), calls.states)
done()

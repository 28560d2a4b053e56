#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""A recording has where each CPython's standard library lies, the script that it runs, and the names of its threads; no script if it runs a module."""
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
from sonde_cli import SONDE
from sonde_trace import Trace
from tap import done, ok

WORK = """
import os, threading, time
threading.Thread(target=time.sleep, args=[600], name="a long name of a thread", daemon=True).start()
print(os.path.dirname(os.__file__), flush=True)
time.sleep(600)
"""


def recorded(command, folder):
    """The standard library of the program, the events proc_python, and the names of threads"""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=folder)) as program:
        library = program.stdout.readline().strip()
        path = os.path.join(folder, "x.sonde")
        subprocess.run([SONDE, "record", "-d", "1", "-p", str(program.pid), "-f", "-o", path], check=True, capture_output=True)
        program.kill()
    trace = Trace(path)
    return library, [(e["library_text"], e["script_text"]) for e in trace.events("proc_python")], [e["name_text"] for e in trace.events("proc_name")]


def check(python):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "work_program.py")
        with open(path, "w", encoding="ascii") as f:
            f.write(WORK)
        with gil_lib.script(python, path) as command:
            library, programs, names = recorded(command, folder)
            ok(programs == [(library, command[-1])] and names == ["a long name of a thread"], f"a script, {python.name}", (programs, names))
        if python.root == "/":
            library, programs, names = recorded([python.exe, "-m", "work_program"], folder)
            ok(programs == [(library, "")], f"a module, {python.name}", programs)


gil_lib.each_python("what is run", check)
done()

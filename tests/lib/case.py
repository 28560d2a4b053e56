# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a program that goes wrong and the commands that someone on call would give; for tests in tests/cases/."""
import atexit
import json
import os
import subprocess
import tempfile

from sonde_cli import SONDE
from tap import done, ok

FOLDER = tempfile.mkdtemp(prefix="sonde-case-")
_programs = []
# computes() computes in line 4; waits() waits for the GIL in line 7, and sleeps in between.
COMPUTES_AND_WAITS = """import threading, time
def computes():
    while True:
        sum(range(1000))
def waits():
    while True:
        time.sleep(0.005)
"""
# The functions run in a thread and in the main thread.
RUN_BOTH = COMPUTES_AND_WAITS + """threading.Thread(target=computes, daemon=True).start()
print("ready", flush=True)
waits()
"""


def start(*argv, until=None, **popen):
    """Starts this program, which is killed when the test ends. Waits for its line that begins with `until`. Its lines so far are .lines."""
    program = subprocess.Popen(argv, text=True, **{"stdout": subprocess.PIPE if until else None, **popen})
    program.lines = []
    _programs.append(program)
    for line in program.stdout if until else ():
        program.lines.append(line.rstrip("\n"))
        if line.startswith(until):
            return program
    assert not until, f"{argv} ended without {until}: {program.lines}"
    return program


def script(name, text):
    """The path of a file with this text in the test's folder"""
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def run(*args, timeout=60):
    """The finished process of `sonde ARGS`, with its output"""
    return subprocess.run([SONDE, *map(str, args)], capture_output=True, text=True, timeout=timeout, check=False)


def say(*args):
    """What `sonde ARGS` prints"""
    ended = run(*args)
    assert not ended.returncode, (args, ended.returncode, ended.stderr)
    return ended.stdout


def record(*options, name="x"):
    """The path of a trace that `sonde record OPTIONS` made"""
    path = os.path.join(FOLDER, name + ".sonde")
    ended = run("record", "-f", "-o", path, *options)
    assert not ended.returncode, (options, ended.returncode, ended.stderr)
    return path


def first(pid, seconds=2):
    """The first finding about a recording of this process, as JSON has it"""
    return json.loads(say("report", record("-d", seconds, "-p", pid), "--format", "json"))["findings"][0]


def check_computes_and_waits(trace, program):
    """Checks that a trace shows of work.py, which runs these functions, what computes, and who waited for the GIL, and for whom."""
    text = say("report", trace, "-p", program.pid)
    ok(f"\nwork.py {program.pid} " in "\n" + text and " in computes (work.py:4)\n" in text, "what computes", text)
    ok("s for the GIL in waits (work.py:7)" in text and "held by computes (work.py:4)" in text, "who waited for the GIL, and for whom", text)


def finish():
    """Ends the programs, and the test."""
    kill()
    done()


@atexit.register
def kill():
    for program in _programs:
        program.kill()
        program.wait()
    subprocess.run(["rm", "-rf", FOLDER], check=False)

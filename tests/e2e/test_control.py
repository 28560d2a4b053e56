#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits gate
"""`sonde control`: a recording is paused, resumed and marked, and its families are switched off and on, by those who may do so."""
import os
import shutil
import subprocess
import tempfile

from account import let_pass
from puppet import SONDE, TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok


def control(pid, *words, **options):
    p = subprocess.run([SONDE, "control", str(pid), *words], capture_output=True, text=True, check=False, **options)
    return p.returncode, p.stderr


def expect(name, status, text, pid, *words, **options):
    got, err = control(pid, *words, **options)
    ok(got == status and text in err, name, got, err)


def pauses_and_marks():
    puppet, path = Puppet(), os.path.join(TMP, "control")
    sonde = Sonde(path, "-t", "cuda,proc", "-p", str(puppet.pid))
    expected = []
    for first in (100, 200, 300):
        puppet.do(f"calls {first} 5")
        expected += numbered(puppet.pid, first, 5)
        expect("pause", 0, "", sonde.pid, "pause")
        puppet.do(f"calls {first + 50} 5")
        expect("resume", 0, "", sonde.pid, "resume")
        expect("mark", 0, "", sonde.pid, "mark", f"after {first}\n")
    # their probes are closed when the answer comes
    for first in (400, 500, 600):
        expect("off", 0, "", sonde.pid, "--trace", "-cuda")
        puppet.do(f"calls {first} 5")
        expect("on", 0, "", sonde.pid, "--trace", "+cuda")
        puppet.do(f"calls {first + 50} 5")
        expected += numbered(puppet.pid, first + 50, 5)
    expect("a family that was not loaded", 1, "not loaded when the recording began", sonde.pid, "--trace", "+nccl")
    expect("a family of tracepoints", 1, "can't be switched", sonde.pid, "--trace", "-proc")
    expect("no family", 1, "is not +FAMILY", sonde.pid, "--trace", "cuda")
    expect("no recording", 1, "no recording", puppet.pid, "pause")
    expect("no request", 2, "pause, resume", sonde.pid, "stop")
    sonde.end()
    puppet.end()
    trace = Trace(path)
    ok(allocs(trace) == expected, "exactly the calls are recorded while it is not paused and the family is on", allocs(trace), expected, sonde.messages)
    marks = [trace.strings[e["text"]] for e in sorted(trace.events("meta_mark"), key=lambda e: e["time"])]
    ok(marks == [f"after {first}\n" for first in (100, 200, 300)], "the trace has the marks", marks)
    ok(sonde.messages.count("family cuda was off from") == 3, "and states when the family was off", sonde.messages)


def another_user():
    puppet, path = Puppet(), os.path.join(TMP, "other")
    sonde = Sonde(path, "-t", "cuda", "-p", str(puppet.pid), "--schedule", "active=1")
    expect("with --schedule", 1, "--schedule decides", sonde.pid, "pause")
    with tempfile.TemporaryDirectory() as folder:
        let_pass(folder)
        program = shutil.copy(SONDE, folder)
        got = subprocess.run([program, "control", str(sonde.pid), "mark", "x"], user=65534, group=65534, extra_groups=[], cwd="/", check=False,
                             capture_output=True, text=True)
    ok(got.returncode == 1 and "only root" in got.stderr, "another user may not control it", got.returncode, got.stderr)
    sonde.end()
    puppet.end()
    ok(not list(Trace(path).events("meta_mark")), "and has changed nothing")


def main():
    pauses_and_marks()
    another_user()
    done()


main()

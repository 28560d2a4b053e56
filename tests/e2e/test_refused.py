#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=180
"""A BPF program that the kernel refuses disables its family or a part of it, and every output says so. An old kernel is named.

SONDE_TEST=refuse:NAME and refuse-attach:NAME make the kernel refuse a program, or to attach a program
(docs/test-switches.md).
"""
import json
import os
import pty
import subprocess

from cards import unwrapped
from tap import done, ok

SONDE, TMP = os.environ["SONDE"], os.environ["TMPDIR"]
TRACE = os.path.join(TMP, "refused.sonde")
REASON = "invalid read from stack"


def run(*argv, test=""):
    done = subprocess.run([SONDE, *argv], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          timeout=100, env={**os.environ, "SONDE_TEST": test})
    return done.returncode, done.stdout, done.stderr


def record(test, families):
    return run("record", "-d", "0.1", "-t", families, "-f", "-o", TRACE, test=test)


def lines_with(text, word):
    return [line for line in text.splitlines() if word in line]


def report_json(name):
    return json.loads(run("report", TRACE, name, "--format", "json")[1])


def part():
    code, out, err = record("refuse:net_sent", "proc,net")
    lines = lines_with(err, "net_sent")
    ok(code == 0 and len(lines) == 1 and REASON in lines[0] and "reports lack bytes sent" in lines[0],
       "a refused program has one message: its name, the reason, what reports lack", f"{code}\n{err}")
    got = report_json("summary").get("refused_programs", [])
    ok([(r["family"], r["program"], r["lacks"], r["family_off"]) for r in got] == [("net", "net_sent", "bytes sent", False)]
       and REASON in got[0]["why"], "the trace has the refused program: report --format json", got)
    for name in ("net", "processes", "losses"):
        text = unwrapped(run("report", TRACE, name)[1])
        ok(lines_with(text, "missing net: bytes sent") and REASON in text, f"report {name} says what is missing", text)


def belongs_together():
    code, _, err = record("refuse:disk_completed", "disk")
    rows = list(report_json("losses")["tables"]["refused"])
    ok(code == 0 and [r["program"] for r in rows] == ["disk_completed"] and len(lines_with(err, "disk")) <= 2,
       "without the program for an I/O's end, its start is not recorded either", f"{code}\n{err}{rows}")


def family():
    code, _, err = record("refuse:sched_switch", "proc,sched")
    ok(code == 3 and "reports lack all of the family" in err, "a family that needs the program is off, exit status 3",
       f"{code}\n{err}")
    events = {e["name"]: e["events"] for e in json.loads(run("info", TRACE, "--format", "json")[1])["tables"]["events"]}
    ok(not any(n.startswith("sched_") for n in events) and events.get("proc_task", 0) > 0,
       "the other family is recorded", events)
    code, _, err = record("refuse:sched_*", "proc,sched")
    ok(code == 3 and len(lines_with(err, "family sched")) == 1, "all of a family's programs refused: one message", f"{code}\n{err}")
    ok("program sched_switch is missing" in err, "the message names the program that the family needs", err)
    code, _, err = record("refuse:cuda_*", "proc,cuda")
    ok(code == 3 and len(lines_with(err, "family cuda")) == 1, "also for a family that probes a library", f"{code}\n{err}")


def unattached():
    code, _, err = record("refuse-attach:sched_waking", "proc,sched")
    lines = lines_with(err, "sched_waking")
    ok(code == 0 and len(lines) == 1 and "can't be attached" in lines[0] and "reports lack the wakers of threads" in lines[0],
       "a tracepoint that can't be attached disables its part, with one message", f"{code}\n{err}")
    got = report_json("summary").get("refused_programs", [])
    ok([(r["family"], r["program"], r["family_off"]) for r in got] == [("sched", "sched_waking", False)], "the trace has it", got)
    code, _, err = record("refuse-attach:sched_switch", "proc,sched")
    events = {e["name"]: e["events"] for e in json.loads(run("info", TRACE, "--format", "json")[1])["tables"]["events"]}
    ok(code == 3 and len(lines_with(err, "family sched")) == 1 and not any(n.startswith("sched_") for n in events)
       and events.get("proc_task", 0) > 0, "or it disables its family, and the other family is recorded", f"{code}\n{err}{events}")
    code, _, err = run("record", "-d", "0.1", "-F", "99", "-t", "proc,sample", "-f", "-o", TRACE, test="refuse-attach:sample_tick")
    ok("sample_tick" in err and "tracing into" in err, "a clock that can't be attached to", f"{code}\n{err}")
    code, _, err = record("refuse-attach:core_exec", "proc")
    ok(code == 1 and "core_exec" in err and "nothing can be recorded" in err, "one of the core: an error, exit status 1",
       f"{code}\n{err}")


def core():
    code, _, err = record("refuse:core_exec", "proc")
    ok(code == 1 and "core_exec" in err and REASON in err and "nothing can be recorded" in err,
       "a program of the core: an error, exit status 1", f"{code}\n{err}")
    code, _, err = record("refuse:core_open_calls", "proc")
    ok(code == 0 and lines_with(err, "core_open_calls"), "an optional program of the core: one message", f"{code}\n{err}")
    code, _, err = record("refuse:core_file_peers", "proc,syscall")
    ok(code == 0 and "other ends of pipes" in err, "the program that reads files: one message", f"{code}\n{err}")


def doctor():
    code, out, err = run("doctor", "--format", "json", test="refuse:sched_switch,refuse:net_sent,refuse:cuda_launch")
    rows = {r["name"]: (r["usable"], r["why"]) for r in json.loads(out)["tables"]["families"]}
    ok(code == 3 and rows["sched"][0] == "no" and rows["net"][0] == "partly" and rows["cuda"][0] == "partly",
       "doctor tries the same programs", rows)
    ok(REASON in rows["sched"][1] and "bytes sent" in rows["net"][1] and "cudaLaunchKernel" in rows["cuda"][1],
       "doctor has the reason and what is missing", rows)


def doctor_agrees():
    test = "refuse-attach:sched_waking,refuse:lock_*"
    code, out, err = run("doctor", "--format", "json", test=test)
    rows = {r["name"]: (r["usable"], r["why"]) for r in json.loads(out)["tables"]["families"]}
    _, _, err = record("refuse:lock_*", "proc,lock")
    ok("lock_enter is missing" in rows["lock"][1] and "lock_enter is missing" in err, "doctor and record name the same program",
       f"{rows['lock']}\n{err}")
    ok(code == 3 and rows["sched"][0] == "partly" and "the wakers of threads" in rows["sched"][1], "doctor names a program that can't be attached", rows)


def terminal():
    """Progress is shown on a terminal from the start, and only there."""
    pid, fd = pty.fork()
    if not pid:
        os.execv(SONDE, [SONDE, "record", "-d", "0.1", "-t", "proc", "-f", "-o", TRACE])
    text = b""
    try:
        while data := os.read(fd, 4096):
            text += data
    except OSError:
        pass
    os.waitpid(pid, 0)
    first = text.split(b"\r")[1:3]
    last = text.rfind(b"\r\x1b[K")
    ok(b"tracing 0 s" not in text[last:] and text.find(b" events in ", last) > last,
       "the line of progress is erased", text)
    ok(b"loading programs" in text and text.find(b"loading programs") < text.find(b"tracing into"),
       "on a terminal the first line says that programs are loaded", first)
    err = run("record", "-d", "0.1", "-t", "proc", "-f", "-o", TRACE)[2]
    ok("loading programs" not in err, "progress is not printed to a file", err)


def old_kernels():
    for version in ("5.10", "5.15", "6.0"):
        for argv in (["record", "-d", "0.1", "-o", TRACE, "-f"], ["top", "--plain", "--count", "1"], ["doctor"]):
            code, out, err = run(*argv, test=f"kernel:{version}")
            ok(code == 1 and f"sonde needs Linux 6.1 (this is {version})" in err and not out,
               f"Linux {version}: {argv[0]} names the required version, exit status 1", f"{code}\n{out}{err}")


part()
belongs_together()
family()
unattached()
core()
doctor()
doctor_agrees()
terminal()
old_kernels()
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record, report, info and the exports agree on a recording's length, its losses and its families."""
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

from cards import unwrapped
from sonde_cli import Sonde
from tap import done, ok, skip_all

ROOT, SONDE, TMP, B = (os.environ[n] for n in ("ROOT", "SONDE", "TMPDIR", "B"))
CUDART = os.path.join(os.path.abspath(B), "tests/fakes/cuda/13/libcudart.so.13")

# threads that contend for the GIL, one that sleeps, one that collects garbage
WORK = """
import gc, threading, time

def spin():
    while True:
        sum(range(2000))
def collect():
    while True:
        time.sleep(0.05)
        gc.collect()
for f in (spin, spin, collect):
    threading.Thread(target=f, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def sonde(*args):
    done = subprocess.run([SONDE, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ok(done.returncode == 0, "sonde " + " ".join(a.replace(TMP, "") for a in args), done.stdout)
    return done.stdout


def record(name, *args, env=None):
    """(path of the trace, messages)"""
    path = os.path.join(TMP, name)
    with subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        done = subprocess.run([SONDE, "record", "-f", "-o", path, "-p", str(target.pid), "-d", "1.5", *args], text=True,
                              stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        target.kill()
    ok(done.returncode == 0, f"{name}: recorded", done.stderr)
    return path, done.stderr


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def pprof_duration(path):
    """Field 10 of the profile: duration_nanos"""
    with gzip.open(path) as f:
        data = f.read()
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            if key >> 3 == 10:
                return value
        elif key & 7 == 2:
            length, at = varint(data, at)
            at += length
        else:
            at += 8 if key & 7 == 1 else 4
    return None


OUTSIDE = "outside of the traced time"


def check_length(path, messages):
    reported = re.search(r" events in (\S+ \S+), ", messages)
    reported = reported.group(1) if reported else messages
    trace = json.loads(sonde("report", path, "--format", "json"))["trace"]
    ns = trace["traced_ns"]
    # it excludes detaching
    ok(ns >= 1500000000 and ns <= trace["last_ns"] - trace["first_ns"], "the traced time is that of -d", trace)
    ok(trace["to_ns"] - trace["from_ns"] == ns, "the report covers the traced time", trace)
    report, info = sonde("report", path), sonde("info", path)
    ok(re.search(rf"^1 process was traced for {re.escape(reported)}\.$", report, re.M), f"report's length is record's, {reported}", report)
    ok(re.search(rf"^traced for +{re.escape(reported)}, from ", info, re.M), "so is info's", info)
    ok("when all probes were attached" in report, "the report mentions events outside the traced time", report)
    out = os.path.join(TMP, "figures.db")
    sonde("export", path, "--to", "sqlite", "-f", "-o", out)
    db = dict(sqlite3.connect(out).execute("SELECT name, value FROM sonde_info"))
    ok(db["stop"] - db["live"] == ns, "the length in sqlite is record's", db)
    out = os.path.join(TMP, "figures.pb.gz")
    sonde("export", path, "--to", "pprof", "-f", "-o", out)
    ok(pprof_duration(out) == ns, "the length in pprof is record's", pprof_duration(out))
    other = json.loads(sonde("export", path, "--to", "chrome"))["otherData"]
    ok(int(other["traced_ns"]) == ns, "the length in chrome is record's", other)
    rows = json.loads(sonde("report", path, "gil", "--format", "json"))["tables"]["interpreters"]
    ok(rows and all(r["busy_percent"] <= 100 for r in rows), "no GIL was waited for longer than the traced time", rows)
    return report


def check_losses(path, messages, what):
    lost = int(re.search(r"; (\d+) lost$", messages, re.M).group(1))
    losses = json.loads(sonde("report", path, "losses", "--format", "json"))["losses"]
    total = sum(x["count"] for x in losses if x["reason"] != "before the library was probed")
    ok(total == lost, f"{what}: record and report count {lost} lost records", (total, losses))
    report = unwrapped(sonde("report", path, "gil"))
    lines = [x for x in report.splitlines() if x.startswith("lost ")]
    reported = [x[7:] for x in messages.splitlines() if x.startswith("sonde: lost ")]
    ok(lines == reported, f"{what}: record and report have the same lines of losses", f"{lines}\n{reported}")
    ok(all(";" in x for x in lines), f"{what}: each line of losses has its effect", lines)
    outside = [x for x in report.splitlines() if OUTSIDE in x]
    ok(outside == [x[7:] for x in messages.splitlines() if OUTSIDE in x], f"{what}: record and report agree on losses outside the traced time",
       f"{outside}\n{messages}")
    verdict = report.splitlines()[-1]
    ok(verdict in ("no losses recorded", *outside) if not lines else
       "counts and sums" in verdict.lower() and "sonde: " + verdict in messages, f"{what}: and on whether conclusions are valid", (verdict, messages))
    return losses


def loss_lines(text):
    return sorted(m for m in re.findall(r"^(?:sonde: )?lost (.*)$", text, re.M))


def check_objects():
    """A library that is mapped and probed while tracing runs: its loss line has the same file in record and report."""
    path, program = os.path.join(TMP, "objects"), os.path.join(TMP, "program")
    library = shutil.copy(CUDART, TMP)
    # a program that no family probes; it is examined first and has the higher inode number
    shutil.copy(shutil.which("cat"), program)
    recording = Sonde(path, "-t", "cuda", "--", "env", "LD_PRELOAD=" + library, program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                      env={"LD_LIBRARY_PATH": os.path.dirname(CUDART)})
    recording.wait_probed(library)
    recording.process.stdin.close()
    recording.messages += recording.process.stderr.read()
    recording.process.wait()
    messages, reported = loss_lines(recording.messages), loss_lines(unwrapped(sonde("report", path, "losses")))
    ok(any("/libcudart.so.13 " in x for x in messages), "record names the library that was probed while tracing ran", recording.messages)
    ok(messages == reported, "report names the same file", f"{messages}\n{reported}")


def check_foreign():
    """Libraries of processes that -p excludes, most of which end before they are examined, cause no losses."""
    path = os.path.join(TMP, "foreign")
    with subprocess.Popen(["sleep", "60"]) as target:
        with subprocess.Popen([SONDE, "record", "-f", "-t", "cuda", "-o", path, "-p", str(target.pid)], text=True,
                              stderr=subprocess.PIPE) as recording:
            messages = recording.stderr.readline()
            for _ in range(5):
                subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": CUDART}, check=True)
            target.kill()
            messages += recording.communicate()[1]
    reported = sonde("report", path, "losses")
    ok("tracing into" in messages and not loss_lines(messages), "record -p: no losses from other processes' libraries", messages)
    ok(not loss_lines(reported), "report: none either", reported)


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    path, messages = record("whole", "-F", "199", "--off-cpu", "-t", "lean,python")
    report = check_length(path, messages)
    more = re.search(r"^More: `sonde report FILE (\S+)`\.$", report, re.M)
    more = set(more.group(1).split("|")) if more else set()
    ok({"gc", "gil", "lines", "processes", "python", "stacks"} <= more and not {"sched", "osrt", "cuda-api"} & more,
       "the summary names the reports of the recorded families, and no others", report)
    check_losses(path, messages, "default rings")
    path, messages = record("small", "-F", "997", "--off-cpu", "-t", "+python,sched", env={"SONDE_TEST": "small-ring"})
    losses = check_losses(path, messages, "small rings")
    ok(any(x["reason"] == "ring full" and x["share_percent"] > 0 for x in losses), "small rings lose records", losses)
    check_objects()
    check_foreign()
    path, messages = record("named", "-t", "sched", "--sched=all")
    rows = json.loads(sonde("report", path, "sched", "--format", "json"))["tables"]["threads"]
    ok(rows and all(r["name"] for r in rows), "-t sched: each thread has a name", rows)
    done()


main()
done()

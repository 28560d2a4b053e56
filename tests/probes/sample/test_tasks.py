#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=100 waits
"""
Asyncio tasks in a recording: what they wait for, in which function, for which share of the time, and which task holds the lock. They are
read again after a pause, when the process executes another program, and when the child of sonde that reads them has ended.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import bounds
import gil_lib
import proc_files
import tap
from sample_lib import Stacks
from sonde_cli import Sonde
from sonde_trace import Trace
from waiting import wait_for

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tasks_work.py")
SECONDS = 16  # "late" has no task for most of it
NAMES = ("3.11 debian", "3.13 pyenv")
# in these the tasks, or the frames of their coroutines, are found in other ways
OTHERS = ("3.8 pyenv", "3.9 pyenv", "3.10 pyenv", "3.14 sid", "3.15 sid")
LOSS_READ = 9
EDGE_NS = 20_000_000  # a reading takes some time, in which the lock may be released
MEMORY_KIB = 100 << 10  # of the child that reads 300 MiB of line tables


def line(function, text):
    """The line of tasks_work.py below the head of a function that has this text"""
    with open(WORK) as f:
        lines = f.read().splitlines()
    first = lines.index(next(line for line in lines if line.startswith("async def %s(" % function)))
    return "%s (tasks_work.py:%d)" % (function, next(i + 1 for i in range(first, len(lines)) if text in lines[i]))


def start(python, kind, stack):
    command = stack.enter_context(gil_lib.script(python, WORK))
    return subprocess.Popen([*command, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)


def ended(process):
    """[(from, to)] of the lock's holds that the program printed"""
    process.kill()
    return [tuple(map(int, line.split())) for line in process.communicate()[0].splitlines() if line]


def findings_of(trace, process):
    """The findings about tasks of this process alone"""
    out = subprocess.run([gil_lib.SONDE, "report", trace, "-p", str(process.pid), "--format", "json"], stdout=subprocess.PIPE, check=True)
    return [f for f in json.loads(out.stdout)["findings"] if "asyncio tasks" in f["text"]]


def check_lock(name, found, readings, held):
    """readings: {time: (ns that it stands for, whether handle() waits for a lock)}; held: by the program's own clock"""
    found = [f for f in found if f["kind"] == "lock"]
    text = found[0]["text"] if found else ""
    tap.ok("for a lock in " + line("handle", "async with") in text and "held by %s, which awaited sleep" % line("refresh", "asyncio.sleep(") in text,
           "%s: tasks that wait for a lock, and the one that holds it" % name, found)
    lost = sum(ns for ns, waits in readings.values() if waits)
    tap.ok(found and found[0]["lost_ns"] == lost, "%s: for the time of the readings that have this" % name, found, lost)
    clear = {at: waits for at, (_, waits) in readings.items()
             if held and held[0][0] < at < held[-1][1] and all(abs(at - edge) > EDGE_NS for times in held for edge in times)}
    right = sum(waits == any(begin < at < end for begin, end in held) for at, waits in clear.items())
    bounds.share("%s: a reading has it while the lock is held" % name, right / max(1, len(clear)), 1, len(clear), systematic=0.05,
                 why="the child that reads may lose its CPU meanwhile")
    tap.ok(len(clear) >= 30, "%s: there are enough readings" % name, len(clear))


def check_kinds(folder, pythons, stack, meanwhile):
    """All kinds in one recording, during which `meanwhile` is called"""
    trace = os.path.join(folder, "kinds.sonde")
    names = [name for name in NAMES + OTHERS if name in pythons]
    locks = [start(pythons[name], "lock", stack) for name in names]
    kinds = [start(pythons[NAMES[0]], kind, stack) for kind in ("peer", "server", "late", "large", "native", "stuck")]
    peer, server, late, large, native, stuck = kinds
    programs = locks + kinds
    # the first task comes 14 s after this
    late.stdout.readline()
    recording = Sonde(trace, "-d", str(SECONDS), *(word for p in programs for word in ("-p", str(p.pid))))
    meanwhile()
    peak = max([int(s["VmHWM"].split()[0]) for s in map(proc_files.status, readers_of(recording.pid)) if s], default=0)
    recording.end(None)
    truths = [ended(p) for p in programs]
    readings, read = {p.pid: {} for p in programs}, Trace(trace)
    stacks = Stacks(read)
    for e in read.events("sample_tasks"):
        waits = readings[e["pid"]].get(e["time"], (0, False))[1]
        frames = [f.name for f in stacks.stack(e["stack"])]
        readings[e["pid"]][e["time"]] = e["period"], waits or ("handle" in frames and any(n.startswith("Lock.") or n == "acquire" for n in frames))
    for name, p, truth in zip(names, locks, truths):
        check_lock(name, findings_of(trace, p), readings[p.pid], truth)
    for name in OTHERS:
        if name not in pythons:
            tap.skip("tasks, %s" % name, "this CPython is not installed")
    found = findings_of(trace, peer)
    tap.ok(len(found) == 1 and "for another process or machine in " + line("ask", "readline()") in found[0]["text"], "a task that awaits answers", found)
    found = findings_of(trace, server)
    tap.ok(readings[server.pid] and not found, "a server that waits for its clients' requests", found)
    tap.ok(readings[late.pid], "the first task of a loop that had none for long")
    tap.ok(readings[native.pid], "a loop that is known by the file of uvloop only")
    why = subprocess.run([gil_lib.SONDE, "report", trace, "why", str(stuck.pid)], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    tap.ok("for a lock in " + line("pay", "async with other") in why, "`why` names the tasks of a loop that never wakes", why)
    tap.ok(readings[large.pid] and 0 < peak < MEMORY_KIB, "the memory of the children that read is limited", f"{peak} KiB")


def readers_of(sonde):
    """The pids of the children that read tasks"""
    attacher = proc_files.child_named(sonde, "sonde-attacher")
    return [pid for pid in proc_files.children(attacher) if (proc_files.status(pid) or {}).get("Name") == "sonde-tasks"] if attacher else []


def check_interruptions(folder, python, stack):
    target = start(python, "lock", stack)
    target.stdout.readline()
    recording = Sonde(os.path.join(folder, "interrupted.sonde"), "-p", str(target.pid))
    times = []

    def read_since(at):
        return recording.wait_trace(lambda trace: any(e["time"] > at for e in trace.events("sample_tasks")))

    def now():
        times.append(time.monotonic_ns() + 300000000)  # a reading that was requested before
        return times[-1]

    if not tap.ok(wait_for(lambda: readers_of(recording.pid), 60), "a child reads the process's tasks"):
        return
    ended_one = readers_of(recording.pid)
    os.kill(ended_one[0], signal.SIGKILL)
    tap.ok(wait_for(lambda: readers_of(recording.pid) not in ([], ended_one), 60), "another one reads them after that one has ended")
    again = read_since(now())
    recording.process.send_signal(signal.SIGUSR2)
    now()
    time.sleep(1)
    recording.process.send_signal(signal.SIGUSR1)
    again = read_since(now()) and again
    target.send_signal(signal.SIGUSR1)
    again = read_since(now()) and again
    recording.end()
    ended(target)
    trace = Trace(recording.path)
    read = [[e for e in trace.events("sample_tasks") if begin < e["time"] < end - 300000000]
            for begin, end in zip(times, [*times[1:], 1 << 63])]
    lost = sum(e["count"] for e in trace.events("meta_loss") if e["reason"] == LOSS_READ and e["family"] == 0x0c)
    tap.ok(read[0] and lost == 1, "after the end of a child the tasks are read again, and the loss is counted", lost)
    tap.ok(not read[1] and read[2], "not in a pause, but after it", [len(part) for part in read])
    tap.ok(again and read[3], "and after the process has executed another program")


def main():
    found = gil_lib.pythons()[0]
    missing = [name for name in NAMES if name not in found]
    if missing or os.geteuid():
        tap.skip_all("recording needs root, and the Pythons %s" % " and ".join(NAMES))
    with tempfile.TemporaryDirectory(prefix="sonde-tasks-") as folder, contextlib.ExitStack() as stack:
        check_kinds(folder, found, stack, lambda: check_interruptions(folder, found[NAMES[0]], stack))
    tap.done()


main()

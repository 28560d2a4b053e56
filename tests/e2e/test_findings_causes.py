#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Planted causes in traces of the default set, beside traces in which each is just not true."""
import json
import os
import re
import tempfile

from planted import END, code, findings, first_of, make, merged_schema, off, off_stack, process, run, say, written
from tap import done, ok

def check_delay(folder):
    """Each receive takes 40 ms; after it the thread waits for a CPU for 160 ms, as others run"""
    stack, frame = code(1, "ask /app/a.py 7")
    lines = [*process(10, "a"), *stack]
    for i in range(30):
        at = 0.5 + i * 0.25
        lines += [off(10, 10, at, at + 0.04, at + 0.2, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.2, frame, "SYS_recvfrom"),
                  run(10, 10, at + 0.2, at + 0.25)]
    found = findings(folder, *lines)
    ok(found[0].get("kind") == "peer" and found[0]["code"]["line"] == 7 and 75 < found[0]["share_percent"] < 85 and
       "80% of this was waiting for a CPU after that wait was over" in found[0]["text"],
       "a wait for a CPU after a receive is a part of what the receive costs",
       found[0]["text"])
    lines = [line.replace("SCHED_SLEEP", "SCHED_RUNNABLE").replace(f"wake=@{0.54 + i * 0.25:.6f}", "wake=@0") if line.startswith("sched_off") else line
             for i, line in enumerate(lines)]
    lines = [line.split(" wake=")[0] + " state=SCHED_RUNNABLE" if line.startswith("sched_off") else line for line in lines]
    found = findings(folder, *lines)
    ok(not first_of(found, kind="peer") and first_of(found, kind="cpu"), "but not that of a thread that was preempted", found[0]["text"])


def check_short(folder):
    """4,000 waits of 0.9 ms, of which a few have a stack"""
    stack, frame = code(1, "commit /app/db.py 9")
    for stacks, kind in ((20, "disk"), (0, "blocked")):
        lines = [*process(10, "db"), *stack, "sample_clock time=@0 period=20408163 threshold=1000000"]
        for i in range(4000):
            at = 1 + i * 0.0015
            lines += [off(10, 10, at, at + 0.0009, at + 0.0009, "SCHED_BLOCKED"), run(10, 10, at + 0.0009, at + 0.0015)]
            if stacks and i % (4000 // stacks) == 7:
                lines += [off_stack(10, 10, at, at + 0.0009, frame, "SYS_write")]
        found = findings(folder, *lines)
        waits = first_of(found, kind=kind)
        ok(waits and 50 < waits["share_percent"] < 70 and ((waits["call"], waits["code"]["line"]) == ("write", 9)) == (kind == "disk"),
           "short waits of which some have a stack are for what these are" if stacks else "where none has a stack, the cause is unknown",
           [f["text"] for f in found])


def check_demand(folder):
    """It ran for 3 s and waited for a CPU for 4"""
    lines = process(10, "a")
    for i in range(10):
        lines += [run(10, 10, 1 + i * 0.7, 1.3 + i * 0.7, state="SCHED_RUNNABLE", next_tid=20),
                  off(10, 10, 1.3 + i * 0.7, 1.3 + i * 0.7, 1.7 + i * 0.7, "SCHED_RUNNABLE")]
    found = findings(folder, *lines, *process(20, "xz"))
    ok(len([f for f in found if f.get("pid") == 10]) == 1 and "needed a CPU for 100% of 7.000 s and had one for 43%" in found[0]["text"] and
       found[0]["kind"] == "cpu", "what ran and what waited for a CPU are one finding", [f["text"] for f in found])
    ok("xz 20 preempted it most often (100% of the times)" in found[0]["text"], "which names the process that took the CPU",
       found[0]["text"])
    others = [f'sched_other time=@{2 + i / 10} pid=0 tid=0 since=@{1 + i / 10} ran={ns} other_pid={100 + i} comm="{comm}"'
              for i, (comm, ns) in enumerate([("cc1", 640000000)] * 40 + [("ld", 6400000000), ("sh", 5700000000), ("sonde", 32000000000)])]
    found = findings(folder, *lines, *others)
    ok("; meanwhile, of all CPUs' time, cc1 40%, ld 10% (not recorded)" in found[0]["text"] and "1 process was traced" in found[-1]["text"],
       "processes that were not recorded are summed by name", found)
    return lines


def check_pinned(folder, lines):
    lines = [line + " allowed=1" if line.startswith("sched_run") else line for line in [*lines, *process(20, "xz")]]
    pinned = first_of(findings(folder, *lines), kind="affinity")
    ok("CPU 0, to which it is pinned" in pinned.get("text", "") and pinned["confidence"] == "measured", "a thread that may use one CPU is pinned",
       pinned)
    others = findings(folder, *(line.replace("allowed=1", "allowed=8") for line in lines))
    ok(not first_of(others, kind="affinity"), "one that may use all of them is not", [f["text"] for f in others])


def check_import(folder):
    importing = ["main /app/job.py 4", "_find_and_load <frozen_importlib._bootstrap> 1176",
                 "<module> /venv/lib/python3.11/site-packages/pandas/__init__.py 3"]
    for inner, kind in (((), "import"), (("work /app/job.py 30",), "compute")):
        stack, frame = code(1, *importing, *inner)
        stack = [line.replace("frozen_importlib", "frozen importlib") for line in stack]
        samples = [f"sample_cpu pid=10 tid=10 time=@{1 + i * 0.1:.1f} period=100000000 stack={frame}" for i in range(60)]
        found = findings(folder, *process(10, "a"), *stack, run(10, 10, 1, 7), *samples)
        first = found[0]
        ok(first.get("kind") == kind and (kind != "import" or ("job.py:4" in first["text"] and "most of it `pandas`" in first["text"])),
           "samples below importlib are an import" if kind == "import" else "but not the user's function that an import runs",
           [f["text"] for f in found])


def check_chain(folder):
    """The main thread waits for a result, that a thread hands on which reads from a worker process, which computes"""
    waits, waiting = code(1, "report /app/a.py 5", "result /usr/lib/python3.11/concurrent/futures/_base.py 440")
    reads, reading = code(2, "run /usr/lib/python3.11/concurrent/futures/process.py 320")
    works, working = code(3, "summarise /app/a.py 9")
    lines = [*process(10, "a"), *process(20, "worker"), *waits, *reads, *works]
    for i in range(10):
        at = 0.5 + i * 0.7
        lines += [off(10, 10, at, at + 0.65, at + 0.65, "SCHED_SLEEP", 11).replace("waker_pid=11", "waker_pid=10"),
                  off_stack(10, 10, at, at + 0.65, waiting, "SYS_futex", "SAMPLE_LOCK"), run(10, 10, at + 0.65, at + 0.7),
                  off(10, 11, at, at + 0.64, at + 0.64, "SCHED_SLEEP", 20), off_stack(10, 11, at, at + 0.64, reading, "SYS_read"),
                  run(10, 11, at + 0.64, at + 0.7), run(20, 20, at, at + 0.7)]
        lines += [f"sample_cpu pid=20 tid=20 time=@{at + k * 0.1:.1f} period=100000000 stack={working}" for k in range(7)]
    found = findings(folder, *lines)
    result = first_of(found, kind="result")
    ok(result and result["counterpart"]["pid"] == 20 and "in the end it waited for worker 20, which computed in summarise (a.py:9)" in result["text"],
       "a chain of waits is followed to its end", [f["text"] for f in found])


def check_cycle(folder):
    """The threads of two processes wait for each other: the chain does not go around until it has its most levels."""
    stack, frame = code(1, "ask /app/a.py 7")
    lines = [*process(10, "a"), *process(20, "b"), *stack]
    for i in range(10):
        at = 0.5 + i * 0.7
        for pid, tid, waker in ((10, 10, 20), (10, 11, 21), (20, 20, 10), (20, 21, 11)):
            by = f"waker_pid={30 - pid} waker_tid={waker} waker=WAKER_THREAD"
            lines += [off(pid, tid, at, at + 0.65, at + 0.65, "SCHED_SLEEP") + by,
                      off_stack(pid, tid, at, at + 0.65, frame, "SYS_recvfrom"), run(pid, tid, at + 0.65, at + 0.7)]
    findings(folder, *lines)
    levels = json.loads(say("report", os.path.join(folder, "planted.sonde"), "why", "a", "--format", "json"))["tables"]["levels"]
    ok([(x["pid"], x["tid"], x["kind"]) for x in levels] == [(10, None, "peer"), (20, None, "peer")] and levels[-1]["end"] == "cycle",
       "a chain that comes back to the threads of a process ends", levels)


def check_nested(folder):
    """Two threads wait for a process, the second one in a short part of the first one's wait. What the process did in the rest counts, too"""
    (stack, frame), (short, quick), (long, slow) = code(1, "ask /app/a.py 7"), code(2, "quick /app/b.py 3"), code(3, "slow /app/b.py 9")
    lines = [*process(10, "a"), *process(20, "b"), *stack, *short, *long]
    for i in range(10):
        at = 0.5 + i * 0.7
        for tid, start, end in ((10, at, at + 0.65), (11, at + 0.1, at + 0.2)):
            lines += [off(10, tid, start, end, end, "SCHED_SLEEP", 20), off_stack(10, tid, start, end, frame, "SYS_recvfrom"), run(10, tid, end, end + 0.01)]
        lines += [run(20, 20, at, at + 0.7)]
        lines += [f"sample_cpu pid=20 tid=20 time=@{at + 0.15 + k * 0.1:.2f} period=100000000 stack={slow if k else quick}" for k in range(5)]
    findings(folder, *lines)
    levels = json.loads(say("report", os.path.join(folder, "planted.sonde"), "why", "a", "--format", "json"))["tables"]["levels"]
    ok([(x["pid"], x["function"]) for x in levels] == [(10, "ask"), (20, "slow")], "samples count in all of the time in which a thread waited", levels)


def check_convoy(folder):
    """Process 40 holds a file's lock while it sleeps, and three others wait for it, get it one after the other in a changing order, and wake the next"""
    waits, waiting = code(1, "append /app/a.py 5")
    sleeps, sleeping = code(2, "compact /app/a.py 9")
    lines = [*waits, *sleeps, *(line for pid in (10, 20, 30, 40) for line in process(pid, f"p{pid}"))]
    for i in range(16):
        at, order = 0.5 + i * 0.4, ((10, 20, 30), (20, 30, 10), (30, 10, 20))[i % 3]
        lines += [off(40, 40, at, at + 0.35, at + 0.35, "SCHED_SLEEP"), off_stack(40, 40, at, at + 0.35, sleeping, "SYS_clock_nanosleep", "SAMPLE_SLEEP"),
                  run(40, 40, at + 0.35, at + 0.4)]
        for place, (pid, waker) in enumerate(zip(order, (40, *order))):
            end = at + 0.351 + place * 0.001
            lines += [off(pid, pid, at, end, end, "SCHED_SLEEP", waker), off_stack(pid, pid, at, end, waiting, "SYS_flock"), run(pid, pid, end, at + 0.4)]
    found = first_of(findings(folder, *lines), kind="file-lock")
    ok("in the end it waited for p40 40, which slept in compact (a.py:9)" in found.get("text", ""),
       "among processes that wake each other, the one that held the lock meanwhile is named", found)


def check_sum(folder):
    """Two threads compute in one line, each for 30% of the time; or one of them alone"""
    stack, frame = code(1, "answer /app/a.py 7")
    for threads in ((10, 11), (10,)):
        lines = [*process(10, "a"), *stack]
        for tid in threads:
            for i in range(60):
                at = 1 + i * 0.1
                lines += [run(10, tid, at, at + 0.03), off(10, tid, at + 0.03, at + 0.1, at + 0.1, "SCHED_SLEEP"),
                          f"sample_cpu pid=10 tid={tid} time=@{at + 0.01:.6f} period=30000000 stack={frame}"]
        found = first_of(findings(folder, *lines), kind="compute")
        text, share = found.get("text", ""), round(60 * 6 / 8)
        ok(f"in sum, its threads spent {share}% of the time in this line" in text if threads[1:] else text and "in sum" not in text,
           "the time of several threads in a line is summed" if threads[1:] else "but not that of a single one", found)


def check_address_space(folder):
    """Two threads, or one, wait in munmap()"""
    stack, frame = code(1, "render /app/a.py 7")
    for threads in ((10, 11), (10,)):
        lines = [*process(10, "a"), *stack]
        for tid in threads:
            for i in range(30):
                at = 1 + i * 0.2
                lines += [off(10, tid, at, at + 0.15, at + 0.15, "SCHED_BLOCKED"), off_stack(10, tid, at, at + 0.15, frame, "SYS_munmap"),
                          run(10, tid, at + 0.15, at + 0.2)]
        found = next((f for f in findings(folder, *lines) if f.get("call") == "munmap"), {})
        ok(("the lock of the address space" in found.get("text", "")) == (len(threads) > 1) and found,
           f"munmap() of {len(threads)} threads", found)


def check_peer(folder):
    """The other end of a connection is a process whose number another one had before."""
    asks, asking = code(1, "ask /app/a.py 7")
    naps, napping = code(2, "answer /app/b.py 9")
    end = "kind=SYSCALL_FILE_SOCKET family=2 type=1 local0=0x100007f peer0=0x100007f"
    born = "pid=1 tid=1 child_pid=20 child_tid=20 child_ns_pid=20"
    lines = [*process(10, "a"), *asks, *naps, f'proc_fork time=@0.01 {born} comm="old"', run(20, 20, 0.02, 0.2),
             "proc_exit time=@0.21 pid=20 tid=20", f'proc_fork time=@0.3 {born} comm="new"',
             f"syscall_file time=@0.35 pid=20 tid=20 file=2 ino=2 local_port=80 peer_port=40000 {end}",
             f"syscall_file time=@0.4 pid=10 tid=10 file=1 ino=1 local_port=40000 peer_port=80 {end}"]
    for i in range(10):
        at = 0.5 + i * 0.7
        lines += [off(10, 10, at, at + 0.65, at + 0.65, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.65, asking, "SYS_recvfrom"),
                  run(10, 10, at + 0.65, at + 0.7),
                  f"syscall pid=10 tid=10 start=@{at:.6f} time=@{at + 0.65:.6f} nr=SYS_recvfrom ret=1 bytes=1 file=1 sleeps=1",
                  off(20, 20, at, at + 0.64, at + 0.64, "SCHED_SLEEP"),
                  off_stack(20, 20, at, at + 0.64, napping, "SYS_clock_nanosleep"), run(20, 20, at + 0.64, at + 0.7)]
    path, _ = written(folder, "peer", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")
    levels = json.loads(say("report", path, "why", "a", "--format", "json"))["tables"]["levels"]
    ok([(x["name"], x["kind"]) for x in levels] == [("a 10", "peer"), ("new 20", "sleep")],
       "of several processes with one number, that at the other end of a connection is followed", levels)


def check_round_trips(folder):
    stack, frame = code(1, "load /app/a.py 6", "recv /usr/lib/python3.11/site-packages/redis/connection.py 200")
    lines = [*process(10, "a"), *stack, "sample_clock time=@0 period=20408163 threshold=1000000"]
    for i in range(2000):
        at = 1 + i * 0.003
        lines += [off(10, 10, at, at + 0.0012, at + 0.0012, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.0012, frame, "SYS_recvfrom"),
                  run(10, 10, at + 0.0012, at + 0.003)]
    lines += [f"sample_cpu pid=10 tid=10 time=@{1 + i * 0.1:.1f} period=100000000 stack={frame}" for i in range(60)]
    found = first_of(findings(folder, *lines), kind="peer")
    ok("; 100% of these waits were in redis's recv; many small round trips that could be combined: one after the other, 249 a second; "
       "in total, this line took 100% of the time" in found.get("text", ""), "many small round trips of one function", found)


def check_titles(folder):
    for command, title in (("python3 -u /app/train.py --lr 1", "train.py"), ("python3 -X dev -m uvicorn app:app", "uvicorn"),
                           ("python3 -c pass", "python3"), ("", "python3")):
        found = findings(folder, *process(10, "python3", command), run(10, 10, 1, 7))
        ok(found[0]["text"].startswith(title + " 10 ") and found[0]["process"] == title, f"`{command}` is called {title}", found[0]["text"])
    ok("python3" in say("report", os.path.join(folder, "planted.sonde"), "processes"), "the process's own name is still there")


def check_connections(folder):
    """60 requests to one server: each over a connection of its own, and all over one"""
    stack, frame = code(1, "find_user /app/a.py 7", "connect /usr/lib/python3.11/site-packages/psycopg2/__init__.py 122")
    for connections, new in ((60, True), (1, False)):
        lines = [*process(10, "a"), *stack, *(
            f"syscall_file time=@0.1 pid=10 tid=10 file={1 + i} ino={1 + i} kind=SYSCALL_FILE_SOCKET family=2 type=1 local0=0x100007f peer0=0x100007f "
            f"local_port={40000 + i} peer_port=5432" for i in range(connections))]
        for i in range(60):
            at = 0.5 + i * 0.1
            lines += [off(10, 10, at, at + 0.08, at + 0.08, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.08, frame, "SYS_poll"),
                      run(10, 10, at + 0.08, at + 0.1), f"syscall pid=10 tid=10 start=@{at:.6f} time=@{at + 0.08:.6f} nr=SYS_poll ret=1 "
                      f"file={1 + i % connections} sleeps=1"]
        path, found = written(folder, "connections", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")
        text = first_of(found, kind="peer").get("text", "")
        ok("127.0.0.1:5432" in text and ("on 60 connections to 127.0.0.1:5432, with 1 answer on each: it opens a new connection each time" in text) == new,
           "code that connects for each request is named" if new else "but not code that keeps its connection", text)


def check_sleeps(folder):
    """A background thread that sleeps between its attempts: for longer and longer, or equally long each time"""
    stack, frame = code(1, "deliver /app/a.py 7")
    for lengths, uneven in (((0.02, 0.04, 0.08, 0.16, 0.32), True), ((0.124,) * 5, False), ((*(0.01,) * 11, 0.06), False)):
        lines, at = [*process(10, "a"), *stack, run(10, 10, 0.1, 0.2), off(10, 10, 0.2, 7.9, 7.9, "SCHED_SLEEP")], 0.5
        for length in lengths * 10:
            lines += [off(10, 11, at, at + length, at + length, "SCHED_SLEEP"),
                      off_stack(10, 11, at, at + length, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP"), run(10, 11, at + length, at + length + 0.001)]
            at += length + 0.001
        slept = first_of(findings(folder, *lines), kind="sleep")
        ok("deliver (a.py:7)" in slept["text"] and "up to 320.000 ms, as in retries with growing delays" in slept["text"] if uneven else not slept,
           "sleeps of very different lengths are a cause" if uneven else "those of a regular job are not", slept)


def check_heartbeat(folder):
    """A program's only thread sleeps equally long each time: it does nothing else, or it also computes"""
    stack, frame = code(1, "beat /app/a.py 7")
    for computes, kind in ((0.001, "idle"), (0.02, "sleep")):
        lines, at = [*process(10, "a"), *stack], 0.5
        for _ in range(40):
            lines += [off(10, 10, at, at + 0.15, at + 0.15, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.15, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP"),
                      run(10, 10, at + 0.15, at + 0.15 + computes)]
            at += 0.15 + computes
        found = first_of(findings(folder, *lines), kind=kind)
        ok("beat (a.py:7)" in found.get("text", "") and "40 times in clock_nanosleep" in found["text"] and
           ("in a loop of sleeps: it polls, or a pause paces it" in found["text"]) == (kind == "idle"),
           "a program that only sleeps is idle, and the line is named" if kind == "idle" else "the sleeps of one that computes between them are no idleness",
           found)


def check_barrier(folder):
    """Two threads wait at a barrier or for a condition for nearly all of the time, until the third has computed its part"""
    for function, kind in (("pthread_barrier_wait", "barrier"), ("pthread_cond_wait", "condition")):
        stack, frame = code(1, "solve /app/solver", function + " /usr/lib/libc.so.6")
        busy, computes = code(2, "solve /app/solver", "relax_dense /app/solver")
        lines = [*process(10, "solver"), *stack, *busy]
        for i in range(30):
            at = 0.5 + i * 0.2
            for tid in (11, 12):
                lines += [off(10, tid, at, at + 0.19, at + 0.191, "SCHED_SLEEP", waker=13).replace("waker_pid=13", "waker_pid=10"),
                          off_stack(10, tid, at, at + 0.191, frame, "SYS_futex", "SAMPLE_LOCK"), run(10, tid, at + 0.191, at + 0.2)]
            lines += [run(10, 13, at, at + 0.2), f"sample_cpu pid=10 tid=13 time=@{at + 0.1:.1f} period=100000000 stack={computes}"]
        found = findings(folder, *lines)
        waits = first_of(found, kind=kind)
        named = re.search(r"in the end it waited for (solver 10|thread 13), which computed in relax_dense", waits.get("text", ""))
        ok(waits and (named and found[0] is waits) if kind == "barrier" else (found[0] is not waits and not named),
           "threads at a barrier wait for the one that is slow" if kind == "barrier" else "those that wait for a condition may have nothing to do",
           [f["text"] for f in found])


def check_workers(folder):
    """Two processes that ask a third one in the same line: 60% of the time they wait, and 30% they compute there"""
    stack, frame = code(1, "work /app/a.py 3", "count /app/a.py 7")
    lines = [*process(10, "a"), *process(11, "a"), *stack]
    for pid in (10, 11):
        for i in range(70):
            at = 0.5 + i * 0.1
            lines += [off(pid, pid, at, at + 0.06, at + 0.06, "SCHED_SLEEP"), off_stack(pid, pid, at, at + 0.06, frame, "SYS_recvfrom"),
                      run(pid, pid, at + 0.06, at + 0.1),
                      f"sample_cpu pid={pid} tid={pid} time=@{at + 0.08:.2f} period=30000000 stack={frame}",
                      f"sample_cpu pid={pid} tid={pid} time=@{at + 0.09:.2f} period=10000000 stack={frame - 1}"]
    found = first_of(findings(folder, *lines), kind="peer")
    share = found.get("text", "").partition("in total, this line took ")[2].partition("%")[0]
    ok(found.get("processes") == 2 and share and abs(int(share) - 90) <= 2, "of several processes, too, all that a line took is stated", found)


def check_name_of_sonde(folder):
    """A UNIX socket whose name looks like what is printed for a socket of sonde"""
    stack, frame = code(1, "ask /app/a.py 7")
    lines = [*process(10, "a"), *stack, 'syscall_file time=@0.1 pid=10 tid=10 file=1 ino=1 kind=SYSCALL_FILE_SOCKET family=1 type=1 path="/run/x (sonde 1)"']
    for i in range(60):
        at = 0.5 + i * 0.1
        lines += [off(10, 10, at, at + 0.08, at + 0.08, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.08, frame, "SYS_recvfrom"),
                  run(10, 10, at + 0.08, at + 0.1),
                  f"syscall pid=10 tid=10 start=@{at:.6f} time=@{at + 0.08:.6f} nr=SYS_recvfrom ret=1 file=1 sleeps=1"]
    found = written(folder, "sonde", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")[1]
    ok("unix /run/x (sonde 1)" in first_of(found, kind="peer").get("text", ""), "a wait for a socket with such a name is no idleness", found[0])


def check_database(folder):
    for library, kind in (("libsqlite3.so.0.8.6", "lock"), ("libother.so.1", "sleep")):
        stack, frame = code(1, "save /app/a.py 7", "_execute /usr/lib/_sqlite3.so", f"step /usr/lib/{library}", "usleep /usr/lib/libc.so.6")
        lines = [*process(10, "a"), *stack]
        for i in range(60):
            at = 0.5 + i * 0.1
            lines += [off(10, 10, at, at + 0.09, at + 0.09, "SCHED_SLEEP"),
                      off_stack(10, 10, at, at + 0.09, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP"), run(10, 10, at + 0.09, at + 0.1)]
        first = first_of(findings(folder, *lines), kind=kind)
        ok("save (a.py:7)" in first["text"] and
           ("another connection had the SQLite database locked" in first["text"]) == (kind == "lock"),
           "a sleep of SQLite is a wait for a lock of the database" if kind == "lock" else "that of another library is a sleep", first["text"])


def check_generated(folder):
    """Methods that a library generates are not the user's code, unless there is no other, as with `python -c`."""
    for outer, name in ((("count /app/a.py 7",), "count (a.py:7)"), ((), "get (<string>:2)")):
        stack, frame = code(1, *outer, "get <string> 2", "_recv /usr/lib/python3.11/multiprocessing/connection.py 378")
        lines = [*process(10, "a"), *stack, run(10, 10, 1, 7)]
        lines += [f"sample_cpu pid=10 tid=10 time=@{1 + i * 0.1:.1f} period=100000000 stack={frame}" for i in range(60)]
        first = findings(folder, *lines)[0]
        ok(name in first["text"] and "mostly to pickle and copy data for other processes" in first["text"], f"the code is {name}", first["text"])


def check_child(folder):
    """The frames of a forked child that are copies of its parent's are not where it computes."""
    library = "/usr/lib/python3.11/multiprocessing"
    for inner, name in (((), "get (queues.py:367)"), (("total /app/a.py 9",), "total (a.py:9)")):
        stack, frame = code(1, "main /app/a.py 37", f"_launch {library}/popen_fork.py 71", f"_bootstrap {library}/process.py 314",
                            f"worker {library}/pool.py 114", *(inner or (f"get {library}/queues.py 367",)))
        lines = [*process(10, "a"), *stack, run(10, 10, 1, 7)]
        lines += [f"sample_cpu pid=10 tid=10 time=@{1 + i * 0.1:.1f} period=100000000 stack={frame}" for i in range(60)]
        first = findings(folder, *lines)[0]
        ok(first["kind"] == "compute" and name in first["text"], f"a worker process computes in {name}", first["text"])


def check_consumer(folder):
    """A blocking pop waits for work, another command for Redis."""
    for command, kind in (("blpop", "idle"), ("keys", "peer")):
        stack, frame = code(1, "consume /app/a.py 7", f"{command} /usr/lib/python3.11/site-packages/redis/commands/core.py 2600",
                            "_recv /usr/lib/python3.11/site-packages/redis/connection.py 200")
        lines = [*process(10, "a"), *stack]
        for i in range(10):
            at = 0.5 + i * 0.7
            lines += [off(10, 10, at, at + 0.69, at + 0.69, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.69, frame, "SYS_recvfrom"),
                      run(10, 10, at + 0.69, at + 0.7)]
        first = findings(folder, *lines)[0]
        ok(first["kind"] == kind, f"{command} is classified as {kind}", first["text"])


def check_faults(folder):
    """Samples in the kernel: outside of a system call they are page faults"""
    for kernel, in_call, called, text in ((60, 0, [], "mostly in page faults or interrupts."), (60, 1, [], "mostly in the kernel."),
                                          (60, 1, ["read /usr/lib/libc.so.6"], "mostly in the kernel, in calls of read."),
                                          (18, 1, ["read /usr/lib/libc.so.6"], ", 30% in the kernel, in calls of read."),
                                          (12, 1, ["read /usr/lib/libc.so.6"], ", mostly in Python code.")):
        stack, frame = code(1, "render /app/a.py 7", *called)
        lines = [*process(10, "a"), *stack, run(10, 10, 1, 7)]
        lines += [f"sample_cpu pid=10 tid=10 time=@{1 + i * 0.1:.1f} period=100000000 stack={frame if i < kernel else 100} "
                  f"kernel={int(i < kernel)} in_call={in_call}" for i in range(60)]
        first = findings(folder, *lines)[0]
        ok(text in first["text"] and "render (a.py:7)" in first["text"], f"time in the kernel is described as {text}", first["text"])


def check_machines(folder):
    """Traces of two machines: CPU 0 of the other one is busier than that for which the process waits"""
    clock = "meta_clock time=@0 monotonic=@0 boottime=@0 realtime=1767268800000000000 error=100"
    here, there = [*process(10, "a"), *process(20, "xz")], process(30, "make")
    for i in range(10):
        at = 0.5 + i * 0.7
        here += [off(10, 10, at, at, at + 0.6, "SCHED_RUNNABLE"), run(10, 10, at + 0.6, at + 0.7, state="SCHED_RUNNABLE"),
                 run(20, 20, at, at + 0.5, state="SCHED_RUNNABLE")]
        there += [run(30, 30, at, at + 0.7, state="SCHED_RUNNABLE")]
    paths = [make(folder, f"machine{i}", [clock, *lines, END], merged_schema(folder), "proc,sched,gil,sample", boot)
             for i, (lines, boot) in enumerate(((here, "1"), (there, "2")))]
    text = first_of(json.loads(say("report", *paths, "--format", "json"))["findings"], pid=10).get("text", "")
    ok("xz 20" in text and "make" not in text, "a process of another machine does not use the CPUs for which one waits", text)
    levels = json.loads(say("report", *paths, "why", "10", "--format", "json"))["tables"]["levels"]
    ok(levels[0]["object"].startswith("xz 10%") and "make" not in levels[0]["object"], "nor does the reason name it", levels[0])


with tempfile.TemporaryDirectory() as there:
    check_machines(there)
    check_delay(there)
    check_short(there)
    check_pinned(there, check_demand(there))
    check_import(there)
    check_chain(there)
    check_cycle(there)
    check_nested(there)
    check_convoy(there)
    check_sum(there)
    check_address_space(there)
    check_peer(there)
    check_round_trips(there)
    check_titles(there)
    check_connections(there)
    check_sleeps(there)
    check_heartbeat(there)
    check_name_of_sonde(there)
    check_barrier(there)
    check_workers(there)
    check_database(there)
    check_generated(there)
    check_child(there)
    check_consumer(there)
    check_faults(there)
done()

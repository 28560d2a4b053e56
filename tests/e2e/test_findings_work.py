#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Whose work others wait for, and what a line costs in all: planted in traces of the default set, beside traces in which it is not true."""
import tempfile

from planted import code, findings, first_of, off, off_stack, process, run
from tap import done, ok

LOOP = ["main /app/a.py 90", "run /usr/lib/python3.11/asyncio/runners.py 118", "_run_once /usr/lib/python3.11/asyncio/base_events.py 1909"]
SELECT = "select /usr/lib/python3.11/selectors.py 468"
CLOCK = "sample_clock time=@0 period=20408163 threshold=1000000"


def sample(pid, tid, time, frame, ns=100000000, **fields):
    more = " ".join(f"{k}={v}" for k, v in fields.items())
    return f"sample_cpu pid={pid} tid={tid} time=@{time:.6f} period={ns} stack={frame} {more}"


def has(found, text):
    return text in found.get("text", "")


def check_children(folder):
    """A process waits for a child process 30 times: the same one, or one after the other"""
    for n in (30, 1):
        waits, waiting = code(1, "main /app/a.py 7")
        work, working = code(2, "shrink /app/b.py 12")
        lines = [*process(10, "a"), *waits, *work]
        for i in range(n):
            lines += process(20 + i, "convert")
        for i in range(30):
            at, child = 1 + i * 0.2, 20 + i % n
            lines += [off(10, 10, at, at + 0.19, at + 0.19, "SCHED_SLEEP", child), off_stack(10, 10, at, at + 0.19, waiting, "SYS_wait4"),
                      run(10, 10, at + 0.19, at + 0.2), run(child, child, at + 0.01, at + 0.19), sample(child, child, at + 0.1, working)]
        found = first_of(findings(folder, *lines), kind="child")
        ok(has(found, "in main (a.py:7)") and has(found, "processes") == (n > 1) and
           has(found, "; 30 processes, mostly convert, ended these waits; 100% of their CPU time was in shrink (b.py:12)") == (n > 1),
           f"{n} child process{'es' if n > 1 else ''}", found)


def check_loop(folder):
    """A callback computes for 200 ms, thirty times; then the loop waits for events for 30 ms."""
    for inner, ms, held in (("handle /app/a.py 7", 200, True), ("handle /app/a.py 7", 20, False)):
        callback, calling = code(1, *LOOP, "_run /usr/lib/python3.11/asyncio/events.py 80", "export /app/a.py 12", inner)
        waits, waiting = code(2, *LOOP, SELECT)
        lines, at = [*process(10, "api"), *callback, *waits], 1
        for _ in range(30):
            lines += [run(10, 10, at, at + ms / 1000), sample(10, 10, at + ms / 2000, calling, ms * 1000000)]
            at += ms / 1000
            lines += [off(10, 10, at, at + 0.03, at + 0.03, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.03, waiting, "SYS_epoll_wait")]
            at += 0.03
        found = first_of(findings(folder, *lines), kind="compute")
        ok(has(found, "it blocked the event loop 30 times for 50 ms or longer, for at most 200.000 ms") == held and
           has(found, "the event loop had called export (a.py:12)"),
           "computations of 200 ms hold up the event loop" if held else "those of 20 ms do not", found)


def check_hidden_loop(folder):
    """A callback of a loop that no Python function shows sleeps for 200 ms, thirty times; then the loop, or a library, waits for events"""
    for waiting_in, root, hidden in (("uv__io_poll /v/uvloop/loop.so", "main /app/a.py 90", True), ("poll /v/other.so", "main /app/a.py 90", False),
                                     ("run /v/site-packages/gevent/hub.py 647", "", True), ("wait /v/site-packages/other/hub.py 647", "", False)):
        waits, waiting = code(1, *([root] if root else []), waiting_in)
        callback, sleeping = code(2, "export /app/a.py 12", "handle /app/a.py 7")
        callback[1] = callback[1].replace("caller=0", f"caller={100 if root else 0}")
        lines = [*process(10, "api"), *waits, *callback]
        for i in range(30):
            at = 1 + i * 0.23
            lines += [off(10, 10, at, at + 0.2, at + 0.2, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.2, sleeping, "SYS_clock_nanosleep"),
                      off(10, 10, at + 0.201, at + 0.23, at + 0.23, "SCHED_SLEEP"),
                      off_stack(10, 10, at + 0.201, at + 0.23, waiting, "SYS_epoll_wait")]
        found = findings(folder, *lines)
        ok(has(first_of(found, kind="sleep"), "it blocked the event loop 30 times for 50 ms or longer, for at most 200.000 ms") == hidden,
           f"{waiting_in}: {'a loop that is not on the stack' if hidden else 'no loop'}", [f["text"] for f in found])


def check_wakes(folder):
    """Waits of 0.5 ms for a lock: few have a stack, and each has the event of the thread that released it."""
    naps, napping = code(4, "worker /app/log.py 4")
    waits, waiting = code(1, "worker /app/log.py 3", "handle /app/log.py 5", "acquire /usr/lib/python3.11/logging/__init__.py 927")
    holds, holding = code(2, "worker /app/log.py 3", "handle /app/log.py 5", "release /usr/lib/python3.11/logging/__init__.py 934")
    writes, writing = code(3, "worker /app/log.py 3", "handle /app/log.py 5", "emit /app/log.py 9")
    for futex in (0x100, 0x200):
        lines = [*process(10, "log"), *naps, *waits, *holds, *writes, CLOCK]
        for i in range(3000):
            at = 1 + i * 0.002
            waiter, holder = (11, 12) if i % 2 else (12, 11)
            lines += [off(10, waiter, at, at + 0.0005, at + 0.0005, "SCHED_SLEEP"), run(10, waiter, at + 0.0005, at + 0.001),
                      off(10, holder, at, at + 0.0004, at + 0.0004, "SCHED_BLOCKED"), run(10, holder, at + 0.0004, at + 0.001),
                      *(line for tid in (11, 12) for line in (
                          off(10, tid, at + 0.001, at + 0.002, at + 0.002, "SCHED_SLEEP"),
                          off_stack(10, tid, at + 0.001, at + 0.002, napping, "SYS_clock_nanosleep"))),
                      f"sample_wake pid=10 tid={holder} time=@{at + 0.0005:.6f} since=@{at:.6f} futex={futex} lock={futex} stack={holding} "
                      f"woken_pid=10 woken_tid={waiter} how=1 value=0"]
            if i % 30 < 2:
                lines += [off_stack(10, waiter, at, at + 0.0005, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=256 lock=256",
                          off_stack(10, holder, at, at + 0.0004, writing, "SYS_fsync")]
        found = findings(folder, *lines)
        lock = first_of(found, kind="lock")
        if futex == 0x100:
            ok(10 < lock.get("share_percent", 0) < 15 and lock["code"]["line"] == 5 and
               has(lock, "held by handle (log.py:5), which for 80% of that wrote to the disk in fsync in emit (log.py:9)"),
               "short waits for a lock, whose holder writes to the disk", [f["text"] for f in found])
        else:
            ok(lock.get("share_percent", 0) < 5, "but waits for another futex are not for that lock", [f["text"] for f in found])


def check_line(folder):
    """A commit waits for the disk for half of the time, and computes for the other half"""
    stack, frame = code(1, "main /app/db.py 20", "commit /app/db.py 9")
    others, other = code(2, "main /app/db.py 21", "parse /app/db.py 15")
    for computes, share in ((frame, 100), (other, 50)):
        lines = [*process(10, "db"), *stack, *others]
        for i in range(60):
            at = 1 + i * 0.1
            lines += [off(10, 10, at, at + 0.05, at + 0.05, "SCHED_BLOCKED"), off_stack(10, 10, at, at + 0.05, frame, "SYS_fsync"),
                      run(10, 10, at + 0.05, at + 0.1), sample(10, 10, at + 0.07, computes, 50000000)]
        disk = first_of(findings(folder, *lines), kind="disk")
        ok(has(disk, "in total, this line took 100% of the time") == (share == 100) and has(disk, "waited 50%"),
           f"the line with the wait took {share}% of the time", disk)


def check_caller(folder):
    """Four functions compute for equal times, called by one line."""
    lines, load = code(1, "main /app/a.py 5", "load /app/a.py 12")
    lines += [*process(10, "a"), run(10, 10, 1, 7)]
    for i in range(4):
        lines += [f'meta_code time=@0 code={i + 1} name="part{i}" file="/app/a.py" line=20 kind=FRAME_PYTHON',
                  f"meta_frame time=@0 frame={i + 1} caller={load} code={i + 1} line={20 + i} kind=FRAME_PYTHON",
                  sample(10, 10, 1.5 + i, i + 1, 1500000000)]
    found = first_of(findings(folder, *lines), kind="compute")
    ok(has(found, "25% of its CPU time was in this function") and has(found, "100% in load (a.py:12) with all that it calls"),
       "a line whose callees compute in many functions is named", found)


def check_no_caller(folder):
    """Two functions of Python compute by turns, and no line called both."""
    lines = process(10, "a")
    for i in range(20):
        stack, frame = code(i % 2 + 1, f"work{i % 2} /app/a.py {5 + i % 2}")
        lines += [*(stack if i < 2 else []), sample(10, 10, 1 + i * 0.2, frame)]
    found = first_of(findings(folder, *lines, run(10, 10, 1, 6)), kind="compute")
    ok(has(found, "50% of its CPU time was in this function, mostly in Python code; also 50% in work1 (a.py:6). Next"),
       "where no line called most of it, none is named", found)


def check_further(folder):
    """A training loop computes in its own lines and in save(); a line of Python code in it is no operation of its own."""
    functions = {1: "train /app/a.py", 2: "save /app/a.py", 3: "<lambda> /app/a.py", 9: "add /usr/lib/libtorch.so"}
    # name: its frames from the outermost to the innermost, each the number of its function and its line
    stacks = {"backward": ((1, 5), (9, 0)), "step": ((1, 6), (9, 0)), "python": ((1, 7),), "save": ((1, 8), (2, 20), (9, 0)), "again": ((1, 5), (3, 5))}
    for save, named in ((3, True), (1, False)):
        times = {"backward": 10, "step": 4, "python": 4, "save": save, "again": 4}
        lines = [*process(10, "a"), run(10, 10, 1, 7)]
        for number, function in functions.items():
            name, file = function.split(" ")
            lines.append(f'meta_code time=@0 code={number} name="{name}" file="{file}" line=1 kind={"FRAME_NATIVE" if number == 9 else "FRAME_PYTHON"}')
        for at, (name, n) in enumerate(times.items()):
            caller = 0
            for depth, (number, line) in enumerate(stacks[name]):
                frame, kind = 10 * at + depth + 1, "FRAME_NATIVE" if number == 9 else "FRAME_PYTHON"
                lines.append(f"meta_frame time=@0 frame={frame} caller={caller} code={number} line={line} kind={kind}")
                caller = frame
            lines.append(sample(10, 10, 1.5 + at, caller, n * 100000000))
        found = first_of(findings(folder, *lines), kind="compute")
        ok(has(found, "in train (a.py:5)") and has(found, f"also {400 / sum(times.values()):.0f}% in train (a.py:6)") and
           has(found, "also 12% in save (a.py:20)") == named and not has(found, "a.py:7") and not has(found, "lambda"),
           f"code that takes {save} of {sum(times.values())} parts of the CPU time is {'' if named else 'not '}named", found)


def check_forked(folder):
    """A process of multiprocessing computes in two functions, below copies of its parent's frames."""
    for bootstrap, named in (("BaseProcess._bootstrap /usr/lib/python3.11/multiprocessing/process.py 314", False), ("work /app/b.py 9", True)):
        lines = [*process(10, "a"), run(10, 10, 1, 7)]
        stack, frame = code(1, "main /app/a.py 3", bootstrap)
        lines += stack
        for n in (1, 2):
            lines += [f'meta_code time=@0 code={n} name="part{n}" file="/app/a.py" line=10 kind=FRAME_PYTHON',
                      f"meta_frame time=@0 frame={n} caller={frame} code={n} line={10 * n} kind=FRAME_PYTHON", sample(10, 10, 1 + n, n, 2000000000 + n)]
        found = first_of(findings(folder, *lines), kind="compute")
        ok(has(found, "in work (b.py:9) with all that it calls") == named and not has(found, "in main (a.py:3)"),
           "a line of the program is the caller" if named else "the parent's line is no caller in a process that it forked", found)


def check_gil_elsewhere(folder):
    """The stack of a holder is read where it releases the GIL; its samples show where it held the GIL."""
    ends, ending = code(1, "write /app/a.py 7")
    renders, rendering = code(2, "total /app/a.py 12")
    waits, waiting = code(3, "answer /app/a.py 30")
    for state, tid, where in (("SAMPLE_GIL_HELD", 11, "total (a.py:12)"), ("SAMPLE_GIL_NOT_HELD", 11, "write (a.py:7)"),
                              ("SAMPLE_GIL_HELD", 12, "write (a.py:7)")):
        lines = [*process(10, "a"), *ends, *renders, *waits, run(10, 11, 0.5, 6.5)]
        for i in range(6):
            at = 0.5 + i
            lines += [off(10, 10, at, at + 0.9, at + 0.9, "SCHED_SLEEP"), run(10, 10, at + 0.9, at + 1),
                      f"gil_wait pid=10 tid=10 start=@{at:.3f} time=@{at + 0.9:.3f} gil=0x1000 stack={waiting} result=GIL_WAIT_TIMEOUT locked=1 "
                      f"number={i + 1} holder=11 holder_stack={ending}",
                      sample(10, tid, at + 0.5, rendering, 800000000, gil=state), sample(10, 11, at + 0.8, ending, 100000000, gil="SAMPLE_GIL_HELD")]
        found = first_of(findings(folder, *lines), kind="gil")
        ok(has(found, f"held by {where}"), f"{'' if tid == 11 else 'for another thread, '}with {state} the holder's code is {where}", found)


def check_gil(folder):
    """Thread 11 collects garbage for 75% of the time and holds the GIL meanwhile."""
    stack, frame = code(1, "trim /app/a.py 7", "gc_collect_main /usr/lib/libpython3.11.so.1.0")
    waits, waiting = code(2, "answer /app/a.py 30")
    for held in (True, False):
        lines = [*process(10, "a"), *stack, *waits, run(10, 11, 0.5, 6.5)]
        for i in range(6):
            at = 0.5 + i
            lines += [off(10, 10, at, at + 0.9, at + 0.9, "SCHED_SLEEP"), run(10, 10, at + 0.9, at + 1),
                      f"gil_wait pid=10 tid=10 start=@{at:.3f} time=@{at + 0.9:.3f} gil=0x1000 stack={waiting} result=GIL_WAIT_TIMEOUT locked=1 "
                      f"number={i + 1} holder=11 holder_stack={frame}",
                      sample(10, 11, at + 0.5, frame, 1000000000, gil="SAMPLE_GIL_HELD" if held else "SAMPLE_GIL_NOT_HELD")]
        found = first_of(findings(folder, *lines), kind="gil")
        ok(has(found, "held by trim (a.py:7), which collected garbage") and has(found, "and held it for 75% of the time") == held,
           "the collector is named as what holds the GIL" if held else "a share is stated only where samples show it", found)


def check_gil_blocked(folder):
    """Others wait for the GIL while thread 11 sleeps for 200 ms in a library. It may have released the GIL if it runs for the rest of their waits."""
    stack, frame = code(1, "poll /app/a.py 7", "sensor_read /usr/lib/libsensor.so", "clock_nanosleep /lib/libc.so.6")
    waits, waiting = code(2, "answer /app/a.py 30")
    for slept in (0.8, 0.2):
        lines = [*process(10, "a"), *stack, *waits]
        for i in range(6):
            at = 0.5 + i
            lines += [off(10, 10, at, at + 0.8, at + 0.8, "SCHED_SLEEP"), run(10, 10, at + 0.8, at + 1),
                      off(10, 11, at, at + slept, at + slept, "SCHED_SLEEP"), run(10, 11, at + slept, at + 1),
                      off_stack(10, 11, at, at + slept, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP"),
                      f"gil_wait pid=10 tid=10 start=@{at:.3f} time=@{at + 0.8:.3f} gil=0x1000 stack={waiting} result=GIL_WAIT_TIMEOUT locked=1 "
                      f"number={i + 1} holder=11 holder_stack=100"]
        found = first_of(findings(folder, *lines), kind="gil")
        ok(has(found, "held by poll (a.py:7)") and
           has(found, "which waited in clock_nanosleep in sensor_read (libsensor.so) and did not release it") == (slept == 0.8),
           "a thread that blocks and keeps the GIL is named with its call" if slept == 0.8 else "but not one that may have released it", found)


def check_gil_shared(folder):
    """Threads 11 and 12 run one function in turn: one keeps the GIL by computing while the other sleeps in the function without it."""
    stack, frame = code(1, "poll /app/a.py 7", "clock_nanosleep /lib/libc.so.6")
    waits, waiting = code(2, "answer /app/a.py 30")
    lines = [*process(10, "a"), *stack, *waits]
    for i in range(6):
        at, holder, other = 0.5 + i, 11 + i % 2, 12 - i % 2
        lines += [off(10, 10, at, at + 0.8, at + 0.8, "SCHED_SLEEP"), run(10, 10, at + 0.8, at + 1), run(10, holder, at, at + 1),
                  off(10, other, at, at + 1, at + 1, "SCHED_SLEEP"), off_stack(10, other, at, at + 1, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP"),
                  f"gil_wait pid=10 tid=10 start=@{at:.3f} time=@{at + 0.8:.3f} gil=0x1000 stack={waiting} result=GIL_WAIT_TIMEOUT locked=1 "
                  f"number={i + 1} holder={holder} holder_stack=100"]
    found = first_of(findings(folder, *lines), kind="gil")
    ok(has(found, "held by poll (a.py:7)") and not has(found, "did not release it"), "waits that several threads of one function caused accuse none", found)


def check_loader(folder):
    """The training loop waits for a worker's thread, which waits for the GIL that the worker's main thread holds."""
    waits, waiting = code(1, "train /app/a.py 5", "_next_data /usr/lib/python3.11/site-packages/torch/utils/data/dataloader.py 700")
    sends, sending = code(2, "_recv /usr/lib/python3.11/multiprocessing/connection.py 378")
    works, working = code(3, "__getitem__ /app/a.py 9")
    lines = [*process(10, "train"), *process(20, "worker"), *waits, *sends, *works]
    for i in range(10):
        at = 0.5 + i * 0.7
        lines += [off(10, 10, at, at + 0.65, at + 0.65, "SCHED_SLEEP", 21).replace("waker_pid=21", "waker_pid=20"),
                  off_stack(10, 10, at, at + 0.65, waiting, "SYS_read"), run(10, 10, at + 0.65, at + 0.7),
                  off(20, 21, at, at + 0.6, at + 0.6, "SCHED_SLEEP", 20), run(20, 21, at + 0.6, at + 0.7), run(20, 20, at, at + 0.7),
                  f"gil_wait pid=20 tid=21 start=@{at:.6f} time=@{at + 0.6:.6f} gil=0x1000 stack={sending} result=GIL_WAIT_TIMEOUT locked=1 "
                  f"number={i + 1} holder=20 holder_stack={working}"]
        lines += [sample(20, 20, at + k * 0.1, working) for k in range(7)]
    found = findings(folder, *lines)
    ok(found[0].get("kind") == "data-loader" and "for batches of its DataLoader in train (a.py:5)" in found[0]["text"] and
       has(found[0], "in the end it waited for worker 20, which computed in __getitem__ (a.py:9)"),
       "a training loop that waits for its DataLoader is the first finding, with what the workers do", [f["text"] for f in found])


def check_ranks(folder):
    """Rank 10 waits in collectives for 90% of the time, rank 20 for 10% or as long; a thread of the library waits for what to do."""
    collective = "all_reduce /usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py 2800"
    reduces, reducing = code(1, "train /app/a.py 5", "reduce /app/a.py 9", collective)
    others, other = code(2, "train /app/b.py 5", "gather /app/b.py 9", collective)
    tokens, tokenizing = code(3, "train /app/a.py 4", "tokenize /app/a.py 20")
    loops, looping = code(4, "_ZN4c10d16ProcessGroupGloo7runLoopEi /usr/lib/libtorch_cpu.so")
    back, backward = code(5, "train /app/a.py 6", "_ZN4c10d7Reducer17finalize_backwardEv /usr/lib/libtorch_cpu.so")
    for first, second, waited, named in ((reducing, reducing, 0.1, True), (reducing, reducing, 0.8, False), (reducing, other, 0.1, False),
                                         (backward, backward, 0.1, True)):
        lines = [*process(10, "a"), *process(20, "a"), *reduces, *others, *tokens, *loops, *back]
        for i in range(6):
            at = 0.5 + i
            for pid, tid, frame, seconds in ((10, 10, first, 0.9), (20, 20, second, waited), (10, 11, looping, 0.9)):
                lines += [off(pid, tid, at, at + seconds, at + seconds, "SCHED_SLEEP"), off_stack(pid, tid, at, at + seconds, frame, "SYS_futex"),
                          run(pid, tid, at + seconds, at + 1)]
            lines += [sample(20, 20, at + 0.95, tokenizing, int((1 - waited) * 1e9))]
        found = findings(folder, *lines)
        ranks, slow = first_of(found, kind="other-ranks", pid=10), first_of(found, kind="straggler", pid=20)
        ok((has(slow, "the other rank wait") and has(slow, "it computed 90% of its time in tokenize (a.py:20)") and slow == found[0] and not ranks if named
            else not slow and has(ranks, "for other ranks of its job in reduce (a.py:9)")) and not any("runLoop" in f["text"] for f in found),
           f"a rank that waits for 90% of the time, and another one for {100 * waited:.0f}% in {'the same' if first == second else 'another'} function",
           [f["text"] for f in found])


def check_quota(folder):
    """Throttled for 600 of 700 ms by /q, in records of a second, half of it within `render`; the cgroup above it throttles a tenth of that"""
    inside, render = code(1, "render /app/a.py 5")
    outside, receive = code(2, "worker /app/pool.py 5", "recv /app/pool.py 9")
    lines = [*process(10, "a"), *inside, *outside]
    for second in range(7):
        lines += [f'sched_throttle time=@{second + 1.1} pid=10 since=@{second + 0.1} throttled={ns} quota=10000000 period=100000000 periods=10 '
                  f'throttled_periods={periods} cgroup="{cgroup}"' for cgroup, ns, periods in (("/", 600000000, 1), ("/q", 590000000 + second * 80000000, 10))]
    for i in range(10):
        at = 0.5 + i * 0.7
        lines += [run(10, 10, at, at + 0.1, state="SCHED_RUNNABLE"), off(10, 10, at + 0.1, at + 0.1, at + 0.7, "SCHED_RUNNABLE"),
                  off_stack(10, 10, at + 0.1, at + 0.7, receive if i % 2 else render, "SYS_read", "SAMPLE_PREEMPTED"),
                  sample(10, 10, at + 0.05, render)]
    found = first_of(findings(folder, *lines), kind="cpu-quota")
    ok(found.get("object") == "cgroup /q" and has(found, "it was throttled in 70 of 70 periods, for 5.810 s"),
       "the cgroup that throttled it for longest", found)
    ok(has(found, "in render (a.py:5)") and has(found, "for 43% of the time within this function, for 43% elsewhere"),
       "how much of the throttled time was within the function", found)


def check_pair(folder):
    """A thread answers another one of its process, which sleeps between its requests."""
    answers, answering = code(1, "serve /app/a.py 5")
    naps, napping = code(2, "ask /app/a.py 9")
    for pid in (10, 20):
        lines = [*process(10, "a"), *process(20, "b"), *answers, *naps]
        for i in range(100):
            at = 1 + i * 0.06
            lines += [off(10, 11, at, at + 0.05, at + 0.05, "SCHED_SLEEP", 12).replace("waker_pid=12", f"waker_pid={pid}"),
                      off_stack(10, 11, at, at + 0.05, answering, "SYS_recvfrom"), run(10, 11, at + 0.05, at + 0.06),
                      off(pid, 12, at, at + 0.05, at + 0.05, "SCHED_SLEEP"), off_stack(pid, 12, at, at + 0.05, napping, "SYS_clock_nanosleep"),
                      run(pid, 12, at + 0.05, at + 0.06)]
        peer = first_of(findings(folder, *lines), kind="peer")
        ok(bool(peer) == (pid != 10), "a wait for a thread of the same process that has nothing to do is idle" if pid == 10 else
           "but one for another process is a wait", peer)


def check_users_code(folder):
    """A pool's idle thread and one in a request wait for the GIL."""
    holds, holding = code(1, "index /app/a.py 7")
    idles, idling = code(2, "_worker /usr/lib/python3.11/concurrent/futures/thread.py 81")
    asks, asking = code(3, "answer /app/a.py 30")
    for seconds, where in ((0.3, "answer (a.py:30)"), (0.05, "_worker (thread.py:81)")):
        lines = [*process(10, "a"), *holds, *idles, *asks, run(10, 11, 0.5, 6.5)]
        for i in range(6):
            at, number = 0.5 + i, 2 * i + 1
            lines += [off(10, 12, at, at + 0.9, at + 0.9, "SCHED_SLEEP"), run(10, 12, at + 0.9, at + 1),
                      off(10, 10, at, at + seconds, at + seconds, "SCHED_SLEEP"), run(10, 10, at + seconds, at + 1)]
            lines += [f"gil_wait pid=10 tid={tid} start=@{at:.3f} time=@{at + long:.3f} gil=0x1000 stack={stack} result=GIL_WAIT_TIMEOUT locked=1 "
                      f"number={number + k} holder=11 holder_stack={holding}"
                      for k, (tid, long, stack) in enumerate(((10, seconds, asking), (12, 0.9, idling)))]
        found = first_of(findings(folder, *lines), kind="gil")
        ok(has(found, f"for the GIL in {where}"), f"threads that wait for the GIL in {where}", found)


def check_condition(folder):
    """Two threads wait for an event, which thread 12 sets after it has read from a socket in a helper, or while it has nothing to do"""
    waits, waiting = code(1, "handle /app/srv.py 45", "wait /usr/lib/python3.11/threading.py 331")
    reads, reading = code(2, "reload /app/srv.py 38", "load /app/srv.py 33", "get /app/http.py 7", "readinto /usr/lib/python3.11/socket.py 706")
    sets, setting = code(3, "reload /app/srv.py 40", "set /usr/lib/python3.11/threading.py 592")
    idles, idling = code(4, "reload /app/srv.py 41", "get /usr/lib/python3.11/queue.py 180", "wait /usr/lib/python3.11/threading.py 331")
    for loads in (True, False):
        lines = [*process(10, "srv"), *waits, *reads, *sets, *idles]
        for i in range(15):
            at = 0.5 + i * 0.4
            lines += [off(10, 12, at, at + 0.3, at + 0.3, "SCHED_SLEEP", *(() if loads else (13,))), run(10, 12, at + 0.3, at + 0.4),
                      off_stack(10, 12, at, at + 0.3, reading if loads else idling, *(("SYS_read",) if loads else ("SYS_futex", "SAMPLE_LOCK")))]
            for tid in (10, 11):
                lines += [off(10, tid, at, at + 0.31, at + 0.31, "SCHED_SLEEP", 12), run(10, tid, at + 0.31, at + 0.4),
                          off_stack(10, tid, at, at + 0.31, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=256 lock=256",
                          f"sample_wake pid=10 tid=12 time=@{at + 0.31:.6f} since=@{at:.6f} futex=256 lock=256 stack={setting} woken_pid=10 "
                          f"woken_tid={tid} how=1 value=0"]
        found = first_of(findings(folder, *lines), kind="condition")
        end = "ended by reload (srv.py:40)"
        did = ", which waited for another process or machine in get (http.py:7), called by load (srv.py:33)"
        ok(has(found, f"{end}{did if loads else ''}."),
           "what the thread that sets an event did before" if loads else "a thread without work did nothing before", found)


def check_helper(folder):
    """A helper of another file waits for a peer. Its callers are two lines, with 80% and 20% of the time, or five; or it is called from its own file"""
    for callers, text in ((8, "in get (http.py:7), mostly called by handle (srv.py:12): "), (2, "in get (http.py:7): "), (0, "in get (http.py:7): ")):
        lines = process(10, "srv")
        stacks = []
        for n in range(5):
            outer = f"handle /app/srv.py {12 + n}" if callers else f"poll /app/http.py {20 + n}"
            waits, waiting = code(n + 1, "main /app/http.py 90", outer, "get /app/http.py 7", "recv /usr/lib/python3.11/socket.py 700")
            lines += [line.replace(f"code={100 * (n + 1) + 2} ", "code=102 ") for line in waits]
            stacks.append(waiting)
        for i in range(20):
            at = 0.5 + i * 0.3
            stack = stacks[i // 4 if callers < 8 else i % 5 == 4]
            lines += [off(10, 10, at, at + 0.2, at + 0.2, "SCHED_SLEEP"), run(10, 10, at + 0.2, at + 0.3),
                      off_stack(10, 10, at, at + 0.2, stack, "SYS_recvfrom")]
        found = first_of(findings(folder, *lines), kind="peer")
        caller = "handle (srv.py:12)" if callers == 8 else None
        ok(has(found, text) and found["code"]["caller"] == caller, f"the callers of a helper: {caller}", found)


def check_rwlock(folder):
    """The writer of a lock wakes all of its readers: the C library's function says that it is a lock."""
    reads, reading = code(1, "find_route /srv/routes", "pthread_rwlock_rdlock /lib/libc.so.6")
    writes, writing = code(2, "update /srv/routes", "pthread_rwlock_unlock /lib/libc.so.6")
    lines = [*process(10, "routes"), *reads, *writes]
    for i in range(20):
        at = 0.5 + i * 0.3
        lines += [run(10, 10, at, at + 0.3)]
        for tid in (11, 12, 13):
            lines += [off(10, tid, at, at + 0.25, at + 0.25, "SCHED_SLEEP", 10), run(10, tid, at + 0.25, at + 0.3),
                      off_stack(10, tid, at, at + 0.25, reading, "SYS_futex", "SAMPLE_LOCK") + " futex=256 lock=256",
                      f"sample_wake pid=10 tid=10 time=@{at + 0.25:.6f} since=@{at:.6f} futex=256 lock=256 stack={writing} woken_pid=10 woken_tid={tid} "
                      "how=1 value=0"]
    found = first_of(findings(folder, *lines), kind="lock")
    ok(has(found, "for a lock in find_route (routes)") and has(found, "held by update (routes)"), "a lock for reading and writing is a lock", found)


def check_priority(folder):
    """Process 20 runs for 6 of 8 s; thread 10 waits for a CPU meanwhile."""
    for own, other, lower in ((130, 120, True), (120, 120, False), (120, 49, True)):
        lines = [*process(10, "backup"), *process(20, "hog")]
        for i in range(10):
            at = 1 + i * 0.6
            lines += [run(20, 20, at, at + 0.5, state="SCHED_RUNNABLE", next_tid=10, priority=other),
                      off(10, 10, at, at, at + 0.5, "SCHED_RUNNABLE"), run(10, 10, at + 0.5, at + 0.6, state="SCHED_RUNNABLE", next_tid=20, priority=own)]
        found = first_of(findings(folder, *lines), pid=10)
        text = f"its priority is lower (nice {own - 120}) than that of other processes ({'real time' if other < 100 else 'nice 0'})"
        ok((has(found, text) and has(found, "hog 20 had these CPUs")) if lower else "priority" not in found["text"],
           f"{own} against {other}: " + ("the priority is lower" if lower else "equal priorities are not stated"), found)


def check_exec_module(folder):
    """A plugin is loaded and compiled by the user's code for each request."""
    stack, frame = code(1, "price /app/a.py 4", "load_plugin /app/a.py 7", "exec_module <frozen_importlib._bootstrap_external> 936",
                        "source_to_code <frozen_importlib._bootstrap_external> 1001")
    stack = [line.replace("frozen_importlib", "frozen importlib") for line in stack]
    lines = [*process(10, "a"), *stack, run(10, 10, 1, 1.1)]
    for i in range(6):
        lines += [run(10, 11, 1 + i, 1.5 + i), off(10, 11, 1.5 + i, 2 + i, 2 + i, "SCHED_SLEEP"), sample(10, 11, 1.2 + i, frame, 500000000)]
    found = first_of(findings(folder, *lines), kind="import")
    ok(has(found, "imported modules in 50% of 6.000 s in load_plugin (a.py:7)"), "what a program loads by itself is an import, of the thread that does",
       found)


def check_tasks(folder):
    """Asyncio tasks that wait in a package, or in the user's own code, below a folder that is named as the standard library's is"""
    reads = "StreamReader.read /usr/lib/python3.11/asyncio/streams.py 700"
    package = "/srv/venv/lib/python3.11/site-packages/redis/asyncio/connection.py"
    for outer, kind, line in ((("load /app/a.py 7", f"Connection.read_response {package} 20", reads), "peer", 7),
                              (("load /srv/asyncio/locks.py 8", reads), "peer", 8),
                              (("load /app/a.py 9", "Lock.acquire /usr/lib/python3.11/asyncio/locks.py 110"), "lock", 9),
                              (("load /app/a.py 10", "sleep /usr/lib/python3.11/asyncio/tasks.py 600"), None, 10)):
        stack, frame = code(1, *outer)
        lines = [*process(10, "a"), *stack, run(10, 10, 1, 1.1)]
        lines += [f"sample_tasks pid=10 tid=10 time=@{1 + i * 0.1:.3f} period=100000000 stack={frame} tasks=3 begun=1 all=4" for i in range(60)]
        found = [f for f in findings(folder, *lines) if "asyncio tasks" in f["text"]]
        ok([(f["kind"], f["code"]["line"]) for f in found] == ([(kind, line)] if kind else []), f"tasks that wait in {outer[0]}", found)


def check_starts(folder):
    """A process starts 40 others in 8 s, or 200 threads, or 4 processes"""
    for n, child, text in ((40, 1000, "it started 40 processes (mostly b), 5 a second, which lived for 100.000 ms each"),
                           (200, 10, "it started 200 threads, 25 a second, which lived for 100.000 ms each"), (4, 1000, "")):
        check_started(folder, n, child, text, *code(1, "render /app/a.py 7"))
    start, wait = "Thread.start /usr/lib/python3.11/threading.py 975", "Event.wait /usr/lib/python3.11/threading.py 629"
    create = "pthread_create /lib/x86_64-linux-gnu/libc.so.6"
    for outer, text in ((("serve /app/a.py 9", start, wait), "it started 200 threads in serve (a.py:9), 25 a second"),
                        (("serve /app/a.py 9", start, create), "it started 200 threads in serve (a.py:9), 25 a second"),
                        ((start, create), "it started 200 threads, 25 a second")):
        check_started(folder, 200, 10, text, *code(1, *outer))


def check_started(folder, n, child, text, stack, frame):
    """Process 10 computes and starts n processes, or with child 10 threads"""
    lines = [*process(10, "a"), *stack, run(10, 10, 1, 7), *(sample(10, 10, 1 + i * 0.1, frame) for i in range(60))]
    for i in range(n):
        pid, tid, at = (child + i, child + i, 7 * i / n) if child > 10 else (10, 1000 + i, 7 * i / n)
        lines += [f'proc_fork time=@{at:.6f} pid=10 tid=10 child_pid={pid} child_tid={tid} comm="b"',
                  f"proc_exit time=@{at + 0.1:.6f} pid={pid} tid={tid} code=0"]
    said = findings(folder, *lines)[0]["text"]
    ok(text in said if text else "started" not in said, text or "few processes are usual", said)


with tempfile.TemporaryDirectory() as there:
    check_users_code(there)
    check_condition(there)
    check_helper(there)
    check_rwlock(there)
    check_priority(there)
    check_exec_module(there)
    check_children(there)
    check_loop(there)
    check_hidden_loop(there)
    check_wakes(there)
    check_line(there)
    check_caller(there)
    check_no_caller(there)
    check_further(there)
    check_forked(there)
    check_gil_elsewhere(there)
    check_gil(there)
    check_gil_blocked(there)
    check_gil_shared(there)
    check_loader(there)
    check_ranks(there)
    check_quota(there)
    check_pair(there)
    check_starts(there)
    check_tasks(there)
done()

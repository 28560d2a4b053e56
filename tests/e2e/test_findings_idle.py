#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Waits for something to do, which are no causes, beside waits that look like them; threads that are stopped; Rust."""
import tempfile

from planted import END, code, findings, first_of, merged_schema, off, off_stack, process, run, written
from tap import done, ok


def check_turns(folder):
    """Two processes take turns to hold the lock of a file: the one that holds it accepts a connection, or sleeps"""
    waits, waiting = code(1, "worker /app/a.py 5")
    holds, holding = code(2, "worker /app/a.py 6")
    for call, idle in (("SYS_accept4", True), ("SYS_clock_nanosleep", False)):
        lines = [*process(10, "a"), *process(11, "a"), *waits, *holds]
        for i in range(20):
            at, (holder, waiter) = 0.5 + i * 0.3, ((10, 11), (11, 10))[i % 2]
            lines += [off(holder, holder, at, at + 0.298, at + 0.298, "SCHED_SLEEP"), off_stack(holder, holder, at, at + 0.298, holding, call),
                      run(holder, holder, at + 0.298, at + 0.3),
                      off(waiter, waiter, at, at + 0.299, at + 0.299, "SCHED_SLEEP", waker=holder),
                      off_stack(waiter, waiter, at, at + 0.299, waiting, "SYS_flock"), run(waiter, waiter, at + 0.299, at + 0.3)]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="file-lock")) != idle,
           "servers that take turns to accept are idle" if idle else "processes that sleep in turn with a lock are not", [f["text"] for f in found])


def check_timeouts(folder):
    """A thread waits for a condition 40 times, until the timeout ends the wait, or another thread, or rarely another thread"""
    stack, frame = code(1, "beat /app/a.py 5", "wait /usr/lib/python3.11/threading.py 331")
    for every in (0, 1, 20):
        lines = [*process(10, "a"), *stack]
        for i in range(40):
            at, waker = 0.5 + i * 0.15, 11 if every and i % every == 0 else 0
            lines += [off(10, 10, at, at + 0.14, at + 0.14, "SCHED_SLEEP", waker=waker).replace("waker_pid=11", "waker_pid=10"),
                      off_stack(10, 10, at, at + 0.14, frame, "SYS_futex", "SAMPLE_LOCK"), run(10, 10, at + 0.14, at + 0.15)]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="condition")) == (every == 1), "a condition that is signalled is a cause" if every == 1 else
           "one that mostly its timeout ends is a heartbeat" if every else "one that only its timeout ends is a heartbeat", [f["text"] for f in found])


def check_semaphore(folder):
    """Two processes take a semaphore of System V in turn; or one waits in it for the other, which never does"""
    takes, taking = code(1, "enter /srv/gate", "semop /lib/libc.so.6")
    for both in (True, False):
        lines = [*process(10, "gate"), *process(11, "gate"), *takes]
        for i in range(20):
            at = 0.5 + i * 0.3
            runner, waiter = (10, 11) if i % 2 or not both else (11, 10)
            lines += [run(runner, runner, at, at + 0.298), off(waiter, waiter, at, at + 0.298, at + 0.298, "SCHED_SLEEP", waker=runner),
                      off_stack(waiter, waiter, at, at + 0.298, taking, "SYS_semtimedop"), run(waiter, waiter, at + 0.298, at + 0.3)]
        found = first_of(findings(folder, *lines), kind="semaphore")
        ok((found.get("native") == "enter (gate)") == both, "processes that exclude each other wait for a semaphore" if both else
           "a process that waits at a semaphore for its next work is idle", found)


def check_semaphore_server(folder):
    """A server waits in semop() for the next request of one client, or of two, which wait in semop() for its answers"""
    waits, waiting = code(1, "receive /srv/link", "semop /lib/libc.so.6")
    for clients in ((10,), (10, 12)):
        lines = [line for pid in (11, *clients) for line in process(pid, "link")] + waits
        for i in range(20):
            at, client = 0.5 + i * 0.3, clients[i % len(clients)]
            lines += [off(11, 11, at, at + 0.27, at + 0.27, "SCHED_SLEEP", waker=client), run(11, 11, at + 0.27, at + 0.3),
                      off_stack(11, 11, at, at + 0.27, waiting, "SYS_semtimedop"),
                      run(client, client, at, at + 0.27), off(client, client, at + 0.27, at + 0.3, at + 0.3, "SCHED_SLEEP", waker=11),
                      off_stack(client, client, at + 0.27, at + 0.3, waiting, "SYS_semtimedop")]
        found = [f for f in findings(folder, *lines) if f.get("kind") == "semaphore" and f["pid"] == 11]
        ok(not found, f"a server that waits in semop() for {len(clients)} of its clients is idle", found)


def check_batch(folder):
    """A server's thread waits until a timeout for a batch to become full. Its client waits for that, or shortly and for other work"""
    waits, waiting = code(1, "client /app/a.py 5", "result /usr/lib/python3.11/concurrent/futures/_base.py 451")
    collects, collecting = code(2, "collect /app/a.py 12", "get /usr/lib/python3.11/queue.py 180")
    for wait in (0.24, 0.03):
        lines = [*process(10, "a"), *waits, *collects]
        for i in range(20):
            at = 0.5 + i * 0.25
            lines += [off(10, 11, at, at + wait, at + wait, "SCHED_SLEEP", waker=10).replace("waker_tid=10", "waker_tid=12"),
                      off_stack(10, 11, at, at + wait, waiting, "SYS_futex", "SAMPLE_LOCK"), run(10, 11, at + wait, at + 0.25),
                      off(10, 12, at, at + 0.23, at + 0.23, "SCHED_SLEEP"),
                      off_stack(10, 12, at, at + 0.23, collecting, "SYS_futex", "SAMPLE_LOCK"), run(10, 12, at + 0.23, at + 0.25)]
        found = first_of(findings(folder, *lines), kind="result")
        ok(("waited until a timeout in collect (a.py:12)" in found["text"]) == (wait > 0.1),
           "a thread that waits for a timeout makes others wait" if wait > 0.1 else "or not, if they wait for less time", found)


def check_reader(folder):
    """A thread in the background, or the main thread, reads lines that a process writes now and then which sonde did not follow"""
    stack, frame = code(1, "follow /app/a.py 5")
    pipe = "syscall_file time=@0.1 pid=10 tid=10 file=1 ino=1 kind=SYSCALL_FILE_PIPE"
    for tid in (11, 10):
        lines = [*process(10, "a"), *process(20, "tail"), *process(30, "b"), run(30, 30, 1, 1.1), *stack, pipe]
        for i in range(20):
            at = 0.5 + i * 0.3
            lines += [off(10, tid, at, at + 0.299, at + 0.299, "SCHED_SLEEP", waker=20), run(10, tid, at + 0.299, at + 0.3),
                      off_stack(10, tid, at, at + 0.299, frame, "SYS_read"),
                      f"syscall pid=10 tid={tid} start=@{at:.6f} time=@{at + 0.299:.6f} nr=SYS_read ret=1 file=1 sleeps=1"]
        found = written(folder, "reader", [*lines, END], merged_schema(folder), "proc,sched,gil,sample,syscall")[1]
        ok(bool(first_of(found, kind="peer")) == (tid == 10), "a main thread that reads a pipe waits for its writer" if tid == 10 else
           "one in the background is idle until the writer has something", [f["text"] for f in found])


def check_native_sleep(folder):
    """A native thread sleeps equally long each time, and does hardly anything else, or computes as well"""
    stack, frame = code(1, "beat /app/server", "clock_nanosleep /usr/lib/libc.so.6")
    for tid, computes, kind in ((11, 0.001, "idle"), (10, 0.001, "idle"), (10, 0.03, "sleep")):
        lines = [*process(10, "server"), *stack]
        for i in range(40):
            at = 0.5 + i * 0.15
            lines += [off(10, tid, at, at + 0.15 - computes, at + 0.15 - computes, "SCHED_SLEEP"), run(10, tid, at + 0.15 - computes, at + 0.15),
                      off_stack(10, tid, at, at + 0.15 - computes, frame, "SYS_clock_nanosleep", "SAMPLE_SLEEP")]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="sleep")) == (kind == "sleep"), f"native thread {tid} that sleeps: {kind}", [f["text"] for f in found])


def check_rust(folder):
    """Rust's mutex waits in its own library, not in the C library. Only the hash distinguishes its crate core from a namespace of C++."""
    look_up, core = "_ZN6quotes7look_up17hecf5fe9a0bda15e4E /app/quotes", "_ZN4core4Pool4takeEv /app/quotes"
    rust = "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended /app/quotes"
    old_rust = "_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE.llvm.77 /app/quotes"
    for stack, expected in (([look_up, rust], "quotes::look_up (quotes)"), ([look_up, old_rust, rust], "quotes::look_up (quotes)"),
                            ([look_up, core, "pthread_mutex_lock /lib/libc.so.6"], "core::Pool::take (quotes)")):
        waits, waiting = code(1, *stack)
        lines = [*process(10, "quotes"), *waits]
        for i in range(30):
            at = 0.5 + i * 0.2
            lines += [off(10, 11, at, at + 0.19, at + 0.19, "SCHED_SLEEP", waker=12).replace("waker_pid=12", "waker_pid=10"),
                      off_stack(10, 11, at, at + 0.19, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=77", run(10, 11, at + 0.19, at + 0.2)]
        found = findings(folder, *lines)
        ok(found[0]["kind"] == "lock" and found[0]["native"] == expected, f"the kind of a wait for a lock, and the program's function: {expected}", found[0])


def check_child(folder):
    """A program waits for its child, once for all of the time, or 40 times"""
    stack, frame = code(1, "main /app/a.py 5", "run /usr/lib/python3.11/subprocess.py 500")
    for times in (1, 40):
        lines = [*process(10, "a"), *stack]
        for i in range(times):
            at, took = 0.5 + i * 6 / times, 6 / times - 0.01
            lines += [off(10, 10, at, at + took, at + took, "SCHED_SLEEP"), off_stack(10, 10, at, at + took, frame, "SYS_wait4"),
                      run(10, 10, at + took, at + took + 0.01)]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="child")) == (times > 1), "waits for children are a cause" if times > 1 else
           "one for a child that runs on and on is none", [f["text"] for f in found])


def check_children(folder):
    """A program waits for 30 children, one after the other, which sleep or compute; in a function of its own, or in a callback of an event loop"""
    waits = (["main /app/a.py 5"], ["main /app/a.py 5", "_run /usr/lib/python3.11/asyncio/events.py 80", "convert /app/a.py 7"])
    naps, napping = code(3, "main /app/b.py 9")
    for sleeps, functions in ((True, waits[0]), (False, waits[0]), (True, waits[1])):
        lines, frame = code(1, *functions)
        lines += [*process(10, "a"), *naps]
        for i in range(30):
            at, child = 1 + i * 0.2, 20 + i
            lines += [*process(child, "b"), off(10, 10, at, at + 0.19, at + 0.19, "SCHED_SLEEP", child), off_stack(10, 10, at, at + 0.19, frame, "SYS_wait4"),
                      run(10, 10, at + 0.19, at + 0.2)]
            lines += [off(child, child, at, at + 0.18, at + 0.18, "SCHED_SLEEP"), off_stack(child, child, at, at + 0.18, napping, "SYS_clock_nanosleep"),
                      run(child, child, at + 0.18, at + 0.189)] if sleeps else [run(child, child, at, at + 0.189)]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="child")) == (not sleeps or len(functions) > 1),
           "waits for children that sleep hold up an event loop" if len(functions) > 1 else
           "waits for children that sleep are idle" if sleeps else "those for children that compute are not", [f["text"] for f in found])


def check_request(folder):
    """A server's thread waits in a library for its next request, or while it handles one. No code of the user's is on the stack"""
    site = "/usr/lib/python3/dist-packages"
    for inner in ((), (f"Flask.dispatch_request {site}/flask/app.py 9",)):
        stack, frame = code(1, f"SyncWorker.run {site}/gunicorn/workers/sync.py 9", *inner, f"Cache.get {site}/cache/client.py 9")
        lines = [*process(10, "a"), *stack]
        for i in range(30):
            at = 0.5 + i * 0.2
            lines += [off(10, 10, at, at + 0.15, at + 0.15, "SCHED_SLEEP"), off_stack(10, 10, at, at + 0.15, frame, "SYS_recvfrom"),
                      run(10, 10, at + 0.15, at + 0.2)]
        found = findings(folder, *lines)
        ok(bool(first_of(found, kind="peer")) == bool(inner), "a server that handles a request is not idle" if inner else
           "one that waits for a request is", [f["text"] for f in found])


def check_stopped(folder):
    """A thread computes for 30 ms and is stopped for 120 ms by another process, also while it is in a call"""
    stack, frame = code(1, "transcode /app/a.py 7")
    for state, call, kind in (("SCHED_STOPPED", "-1", "stopped"), ("SCHED_TRACED", "SYS_newfstatat", "traced")):
        lines = [*process(10, "a"), *process(20, "strace"), *stack]
        for i in range(40):
            at = 0.5 + i * 0.15
            lines += [off(10, 10, at, at + 0.12, at + 0.12, state, waker=20), run(10, 10, at + 0.12, at + 0.15)]
            if call != "-1":
                lines += [off_stack(10, 10, at, at + 0.12, frame, call, "SAMPLE_STOPPED")]
        found = first_of(findings(folder, *lines), kind=kind)
        ok(79 < found.get("share_percent", 0) < 81 and found["counterpart"]["pid"] == 20 and (call == "-1" or found["code"]["line"] == 7),
           f"{state}: how long, and by which process", found)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_turns, check_timeouts, check_semaphore, check_semaphore_server, check_batch, check_reader,
                      check_native_sleep, check_rust, check_child, check_children, check_request, check_stopped):
            check(folder)
    done()


main()

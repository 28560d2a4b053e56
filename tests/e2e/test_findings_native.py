#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Planted causes in native programs: locks of Java, channels of Rust, hot functions and their callers."""
import tempfile

from planted import code, findings, first_of, off, off_stack, process, run
from tap import done, ok


def check_java(folder):
    """Java waits for each of its locks in a condition of the C library; other threads of the virtual machine wait in it for events."""
    enters = ("_ZN13ObjectMonitor5enterEP10JavaThread /jvm/libjvm.so", "_ZN13ObjectMonitor6EnterIEP10JavaThread /jvm/libjvm.so")
    waits = ("_ZN13ObjectMonitor4waitElbP10JavaThread /jvm/libjvm.so",)
    park = ("_ZN2os13PlatformEvent4parkEv /jvm/libjvm.so", "pthread_cond_wait /lib/libc.so.6")
    for outer, kind in ((enters, "lock"), (waits, "idle")):
        locks, locking = code(1, *outer, *park)
        events, listening = code(2, "_ZN7Monitor4waitEl /jvm/libjvm.so", "pthread_cond_wait /lib/libc.so.6")
        lines = [*process(10, "java"), *locks, *events]
        for i in range(30):
            at = 0.5 + i * 0.2
            for tid, stack in ((11, locking), (12, locking), (13, listening), (14, listening), (15, listening)):
                lines += [off(10, tid, at, at + 0.19, at + 0.19, "SCHED_SLEEP", 10), run(10, tid, at + 0.19, at + 0.191),
                          off_stack(10, tid, at, at + 0.19, stack, "SYS_futex", "SAMPLE_LOCK") + f" futex={tid}"]
        found = findings(folder, *lines)
        ok(found[0]["kind"] == kind and (kind == "idle" or (found[0]["threads"] == 2 and found[0]["native"] == "ObjectMonitor::EnterI (libjvm.so)")),
           f"threads of Java that wait in {outer[0].split()[0]}: {kind}", found[0])


def ended_waits(tid, waiting, computing):
    """Thread `tid` of process 10 waits for a futex thirty times, each time until thread 12, which computes, ends the wait"""
    lines = []
    for i in range(30):
        at = 0.5 + i * 0.2
        lines += [off(10, tid, at, at + 0.15, at + 0.15, "SCHED_SLEEP", 10).replace("waker_tid=10", "waker_tid=12"), run(10, tid, at + 0.15, at + 0.2),
                  off_stack(10, tid, at, at + 0.15, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=77", run(10, 12, at, at + 0.2),
                  f"sample_cpu pid=10 tid=12 time=@{at + 0.1:.6f} period=100000000 stack={computing}"]
    return lines


def check_channel(folder):
    """A thread sends into a bounded channel of Rust, which is full, for the thread that computes; or waits in a condition of its own"""
    send = "_ZN3std4sync4mpmc5array16Channel$LT$T$GT$4send17h217278e93ae6b65eE /srv/indexer"
    for inner, kind in (((send,), "queue"), (("pthread_cond_wait /lib/libc.so.6",), "condition")):
        sends, sending = code(1, "produce /srv/indexer", *inner, "syscall /lib/libc.so.6")
        computes, computing = code(2, "index_document /srv/indexer")
        lines = [*process(10, "indexer"), *sends, *computes]
        lines += ended_waits(11, sending, computing)
        found = first_of(findings(folder, *lines), kind=kind)
        end = "in the end it waited for" if kind == "queue" else "ended by"
        ok(found.get("native") == "produce (indexer)" and f"; {end} thread 12, which computed in index_document (indexer)." in found["text"],
           f"a wait in {inner[0].split()[0]} is for a {kind}", found)


def check_thread(folder):
    """A thread waits for one that computes, beside another one, which computes more"""
    waits, waiting = code(1, "main /srv/indexer", "pthread_join /lib/libc.so.6")
    computes, computing = code(2, "index_document /srv/indexer")
    spins, spinning = code(3, "poll_cards /srv/indexer")
    lines = [*process(10, "indexer"), *waits, *computes, *spins]
    lines += ended_waits(10, waiting, computing)
    for i in range(30):
        at = 0.5 + i * 0.2
        lines += [run(10, 13, at, at + 0.2), f"sample_cpu pid=10 tid=13 time=@{at + 0.1:.6f} period=200000000 stack={spinning}"]
    found = first_of(findings(folder, *lines), kind="result")
    ok("computed in index_document (indexer)" in found.get("text", ""), "what is waited for is the code of that thread, not of its process", found)


def check_openmp(folder):
    """A thread waits in OpenMP's library for another one of its team, which computes. Or it waits there for something to do"""
    for outer in ("relax /srv/solver", "omp+0x10 /lib/libgomp.so.1"):
        waits, waiting = code(1, outer, "libgomp.so.1+0x1e2d0 /lib/libgomp.so.1", "libgomp.so.1+0x1f780 /lib/libgomp.so.1")
        computes, computing = code(2, "row_sum /srv/solver")
        lines = [*process(10, "solver"), *waits, *computes]
        lines += ended_waits(10, waiting, computing)
        found = first_of(findings(folder, *lines), kind="barrier")
        named = found.get("native") == "relax (solver)" and "computed in row_sum (solver)" in found["text"]
        ok(named if outer[0] == "r" else not found, f"a wait in OpenMP below {outer.split()[0]}", found)


def check_workers(folder):
    """Three processes of one program compute, each mostly in another function"""
    lines = []
    for pid in (20, 30, 40):
        stack, frame = code(pid, f"f{pid} /usr/bin/encoder")
        lines += [*process(pid, "encoder"), *stack]
        for i in range(20):
            at = 0.5 + i * 0.3
            lines += [run(pid, pid, at, at + 0.3, state="SCHED_RUNNABLE"), f"sample_cpu pid={pid} tid={pid} time=@{at + 0.1} period=100000000 stack={frame}"]
    found = [f for f in findings(folder, *lines) if f.get("kind") == "compute"]
    ok(len(found) == 1 and found[0]["processes"] == 3 and "and 2 other processes ran on a CPU" in found[0]["text"],
       "processes of one native program are one finding", [f["text"] for f in found])


def check_callers(folder):
    """A function of the program calls three of a library, or three of the program; none of them takes most of the time"""
    for callee, text in (("/lib/libc.so.6", "in load_rows (loader); 100% of its CPU time was in this function"),
                         ("/srv/loader", "100% in load_rows (loader) with all that it calls")):
        lines = process(10, "loader")
        for i, name in enumerate(("copy", "parse", "hash")):
            stack, frame = code(i + 1, "main /srv/loader", "load_rows /srv/loader", f"{name} {callee}")
            lines += [line.replace(f"={100 * (i + 1)} ", "=900 ").replace(f"={100 * (i + 1) + 1} ", "=901 ") for line in stack]
            lines += [f"sample_cpu pid=10 tid=10 time=@{1 + (3 * k + i) * 0.1:.6f} period=100000000 stack={frame}" for k in range(20)]
        found = first_of(findings(folder, *lines, run(10, 10, 1, 7)), kind="compute")
        ok(text in found.get("text", ""), f"native code that is spread over functions of {callee} has its caller", found)


def check_below(folder):
    """A function of the program calls the C and C++ libraries; a stack that is cut does not count. (percent of samples, functions)"""
    cxx, c, own = "/lib/libstdc++.so.6", "/lib/libc.so.6", ["main /srv/loader", "load_rows /srv/loader"]
    throws = [f"_ZSt20__throw_length_errorPKc {cxx}", f"__cxa_throw {cxx}", "_Unwind_RaiseException /lib/libgcc_s.so.1"]
    insert = "_ZNSt3mapIiiE6insertEv /srv/loader"
    for shares, text in (([(60, [*own, *throws]), (40, own)], ", 60% of that in C++ exceptions: __cxa_throw (libstdc++.so.6)"),
                         ([(60, [*own, *throws]), (40, throws)], ", 100% of that in C++ exceptions: __cxa_throw (libstdc++.so.6)"),
                         ([(85, [*own, f"snprintf {c}", f"libc.so.6+0x5c400 {c}"]), (15, own)], ", 85% of that in snprintf (libc.so.6)."),
                         ([(100, [*own, insert, f"malloc {c}"])], ", 100% of that in std::map<int, int>::insert (loader), mostly in malloc (libc.so.6)."),
                         ([(79, [*own, f"snprintf {c}"]), (21, own)], "in this function.")):
        lines, codes = [*process(10, "loader"), run(10, 10, 1, 7)], {}
        for number, (percent, functions) in enumerate(shares, 1):
            stack, frame = code(number, *functions)
            for i, function in enumerate(functions):
                stack = [line.replace(f" code={100 * number + i} ", f" code={codes.setdefault(function, 100 * number + i)} ") for line in stack]
            lines += [*stack, f"sample_cpu pid=10 tid=10 time=@{1 + number / 10} period={percent * 50_000_000} stack={frame}"]
        found = first_of(findings(folder, *lines), kind="compute").get("text", "")
        ok("in load_rows (loader)" in found and text in found, f"native code called {text}", found)


def check_called(folder):
    """Python calls native code: through ctypes, in a library without symbols, in C++"""
    foreign = ("_ctypes.so+0x94e3 /py/_ctypes.so", "ffi_call /lib/libffi.so.8", "libffi.so.8+0x6f28 /lib/libffi.so.8")
    for called, text in (((*foreign, "next_tick /srv/tickring.so"), "next_tick (tickring.so)"),
                         (("_json.so+0x4c40 /py/_json.so", "memcpy /lib/libc.so.6"), "_json.so"),
                         (("_ZN5torch8autograd7getitemEP7_objectS2_ /py/libtorch_python.so",), "torch::autograd::getitem (libtorch_python.so)")):
        stack, frame = code(1, "follow /srv/feed.py 12", "call /py/libpython3.11.so", *called)
        lines = [*process(10, "feed"), *stack, run(10, 10, 1, 7)]
        lines += [f"sample_cpu pid=10 tid=10 time=@{1 + k * 0.1:.6f} period=100000000 stack={frame}" for k in range(60)]
        found = first_of(findings(folder, *lines), kind="compute")
        ok(f"mostly in native code: {text}" in found.get("text", "") and f"{text} (" not in found["text"], f"native code that Python called: {text}", found)


def check_lock_of_library(folder):
    """Two threads call a C library through ctypes. One waits for the library's lock, which the other holds while it reads from a socket"""
    for file, library, is_foreign in (("/lib/libffi.so.8", "/srv/segments.so", True), ("/py/_segments.so", "/srv/segments.so", False),
                                      ("/py/_ctypes.so", "/usr/bin/python3.11", False)):
        call = f"call {file}"
        waits, waiting = code(1, "collect /srv/ship.py 33", call, f"append_sample {library}", "pthread_mutex_lock /lib/libc.so.6")
        reads, reading = code(2, "ship /srv/ship.py 39", call, f"ship_segment {library}", "read /lib/libc.so.6")
        holds, holding = code(3, "ship /srv/ship.py 39", call, f"ship_segment {library}", "pthread_mutex_unlock /lib/libc.so.6")
        lines = [*process(10, "ship"), *waits, *reads, *holds]
        for i in range(20):
            at = 0.5 + i * 0.3
            lines += [off(10, 12, at, at + 0.24, at + 0.24, "SCHED_SLEEP"), run(10, 12, at + 0.24, at + 0.3),
                      off_stack(10, 12, at, at + 0.24, reading, "SYS_read"),
                      off(10, 11, at + 0.01, at + 0.25, at + 0.25, "SCHED_SLEEP", 12), run(10, 11, at + 0.25, at + 0.31),
                      off_stack(10, 11, at + 0.01, at + 0.25, waiting, "SYS_futex", "SAMPLE_LOCK") + " futex=256 lock=256",
                      f"sample_wake pid=10 tid=12 time=@{at + 0.25:.6f} since=@{at + 0.01:.6f} futex=256 lock=256 stack={holding} woken_pid=10 "
                      "woken_tid=11 how=1 value=0"]
        text = first_of(findings(folder, *lines), kind="lock").get("text", "")
        own, other = (f", which called {name} (segments.so)" if is_foreign else "" for name in ("append_sample", "ship_segment"))
        ok(f"for a lock in collect (ship.py:33){own}: " in text and f"which waited in read in ship (ship.py:39){other}. " in text,
           f"a lock within {library}, called through {file}", text)


with tempfile.TemporaryDirectory() as there:
    check_below(there)
    check_called(there)
    check_lock_of_library(there)
    check_java(there)
    check_channel(there)
    check_openmp(there)
    check_thread(there)
    check_workers(there)
    check_callers(there)
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim's failures: calls of CUPTI that fail or hang, other profilers, device resets, many tracers, exec."""
# test: timeout=300 parallel waits
import collections
import concurrent.futures
import os
import signal
import time

from shim_lib import (
    IMPAIRED,
    KERNELS,
    REFUSED,
    STARTED,
    STOPPED,
    Shimmed,
    States,
    compare,
    setting,
    versions,
)
import proc_files
from tap import done, ok
from waiting import wait_for

EVERYTHING = ("kernel", "memcpy", "memset", "sync", "memory", "call")
newest = versions()[-1]


def texts(r):
    return "; ".join(e["text"] for e in r.got["shim"] if e["text"])


# call: (states that follow, message)
FAILURES = {
    "version": ([STARTED, STOPPED], ""),
    "timestamp": ([REFUSED], "clock can't be read"),
    "subscribe": ([REFUSED], "can't be traced"),
    "unsubscribe": ([STARTED, STOPPED], "can't be left"),
    "register": ([REFUSED], "takes no buffers"),
    "enable": ([STARTED, STOPPED], "not traced"),
    "dump": ([STARTED, STOPPED], ""),
    "disable": ([STARTED, STOPPED], "still traced"),
    "driver_api": ([STARTED, STOPPED], "joined by time alone"),
    "flush": ([STARTED, IMPAIRED, STOPPED], "does not give back its buffers"),
    "next": ([STARTED, STOPPED], ""),
    "dropped": ([STARTED, STOPPED], ""),
    "get_thread": ([STARTED, STOPPED], "not joined to threads"),
    "set_thread": ([STARTED, STOPPED], "not joined to threads"),
}


def at_once(run, cases):
    """The results of run() for each case; four at a time, because they mostly wait"""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(run, cases))


def failures(version):
    runs = at_once(lambda call: Shimmed(version, "-n", "80", "-p", "5000", cupti=setting(**{call: 999, "result_string": 7})), FAILURES)
    for (call, (states, words)), r in zip(FAILURES.items(), runs, strict=True):
        said = texts(r)
        ok(r.status == 0 and r.states() == states and words in said and (words or not said),
           f"CUDA {version}: {call} fails: the program continues, and the reason is reported", r.status, r.got["shim"], r.errors)
        if call in ("version", "dump", "dropped", "driver_api"):
            ok(len(r.got["kernel"]) == 800, f"CUDA {version}: {call} fails: kernels are recorded", len(r.got["kernel"]))
        if call in ("get_thread", "set_thread"):
            ok(r.got["call"] and not any(e["tid"] for e in r.got["call"]), f"CUDA {version}: {call} fails: no wrong thread is recorded", r.got["call"][:1])
        if call == "next":
            ok(sum(e["bytes"] for e in r.got["dropped"] if e["reason"] == 3) > 0 and not r.got["kernel"],
               f"CUDA {version}: unreadable records are counted", r.got["dropped"])
    # fails while tracing
    for call, when, words in (("flush", {"flush_after": 5}, "give back"), ("timestamp", {"timestamp_shim": 1}, "clock can't be read any more")):
        r = Shimmed(version, "-n", "60", "-p", "10000", cupti=setting(**{call: 999}, **when))
        ok(r.status == 0 and r.states() == [STARTED, IMPAIRED, STOPPED] and words in texts(r) and r.got["kernel"],
           f"CUDA {version}: {call} fails later: reported once", r.status, r.got["shim"], len(r.got["kernel"]))
    r = Shimmed(version, "-n", "20", "-p", "1000", cupti="next_stuck=1")
    ok(r.status == 0 and sum(e["bytes"] for e in r.got["dropped"] if e["reason"] == 3) > 0,
       f"CUDA {version}: an invalid buffer does not block the shim", r.status, r.got["dropped"])


def hang(case):
    call, when = case
    began = time.monotonic()
    r = Shimmed(newest, "-n", "100", "-p", "5000", cupti=setting(**{call + "_hang": 1}, **when))
    return call, r, time.monotonic() - began


def hangs():
    cases = (("flush", {"flush_after": 3}), ("timestamp", {"timestamp_shim": 1}), ("disable", {}), ("next", {"next_after": 100}), ("unsubscribe", {}))
    for call, r, took in at_once(hang, cases):
        wall = sum(e["end"] for e in r.truth["call"][-1:]) - sum(e["start"] for e in r.truth["call"][:1])
        print(f"# {call}: the program worked {wall / 1e9:.1f} s, ended after {took:.1f} s")
        ok(r.status == 0 and 2.5 < took - wall / 1e9 and r.states() == [STARTED], f"{call} hangs: the program ends, after the shim's 3 s", r.status, took,
           wall)
    r = Shimmed(newest, "-w", "-n", "300", "-p", "2000", wait=False, SHIM_LATER="1", SONDE_CUPTI_LOOK_MS="20",
                cupti="subscribe_hang=1")
    r.child.stdout.readline()
    os.kill(r.child.pid, signal.SIGUSR1)
    r.child.stdin.write("\n")
    r.finish()
    ok(r.status == 0 and not r.states(), "a hanging subscription does not affect the program",
       r.status, r.states())


def slow():
    r = Shimmed(newest, "-n", "200", "-p", "5000", cupti="flush_ms=300,enable_ms=20,timestamp_ms=1")
    ok(r.status == 0 and r.states() == [STARTED, STOPPED], "slow calls: tracing continues", r.status, r.got["shim"])
    compare("everything is slow", r.truth, r.got, ("kernel", "memcpy", "memset", "sync", "call"), r.names, r.error)
    r = Shimmed(newest, "-w", "-n", "1000", "-p", "2000", wait=False, SHIM_LATER="1", SONDE_CUPTI_LOOK_MS="20",
                cupti="subscribe_ms=1500")
    r.child.stdout.readline()
    r.child.stdin.write("\n")
    r.child.stdin.flush()
    os.kill(r.child.pid, signal.SIGUSR1)
    ok(wait_for(lambda: "libcupti" in (proc_files.read(f"/proc/{r.child.pid}/maps") or ""), 60), "the shim loads CUPTI")
    os.kill(r.child.pid, signal.SIGUSR2)
    r.finish()
    ok(r.status == 0 and r.states() == [STARTED, STOPPED], "the tracer detaches before CUPTI is initialized: CUPTI is released at once",
       r.got["shim"])


def resets():
    for label, args, cuda in (("a device reset", ["-r", "-n", "50", "-p", "2000"], ""),
                              ("resets of two devices", ["-r", "-n", "50", "-p", "2000", "-d", "2", "-t", "2"], "devices=2")):
        r = Shimmed(newest, *args, cuda=cuda)
        ok(r.status == 0 and r.states() == [STARTED, STOPPED] and not r.got["dropped"] and len(r.truth["reset"]) >= 6,
           f"{label}: tracing continues", r.status, r.got["shim"], r.got["dropped"], r.errors)
        compare(label, r.truth, r.got, EVERYTHING, r.names, r.error)
        contexts = {e["context"] for e in r.got["context"]}
        ok({e["context"] for e in r.got["kernel"]} <= contexts and len(contexts) > 6,
           f"{label}: each context is described", contexts)
    r = Shimmed(newest, "-r", "-n", "100", "-k", "40", groups=KERNELS, cupti="reset_loses=1")
    made, reported = sum(e["traced"] for e in r.truth["kernel"]), len(r.got["kernel"])
    lost = sum(e["records"] for e in r.got["dropped"] if e["reason"] == 2)
    described = [sum(e["traced"] for k in ("device", "context", "stream") for e in r.truth[k]),
                 sum(len(r.got[k]) for k in ("device", "context", "stream"))]
    ok(r.status == 0 and lost > 0 and reported + described[1] + lost == made + described[0],
       "a reset at which CUPTI loses records: they are counted exactly", made, reported, lost, described)


def contexts():
    r = Shimmed(newest, "-c", "-d", "2", "-t", "6", "-n", "30", cuda="devices=2")
    ok(r.status == 0 and r.states() == [STARTED, STOPPED], "several contexts per device: started and stopped", r.got["shim"])
    compare("several contexts a device", r.truth, r.got, EVERYTHING, r.names, r.error)
    of = {e["context"]: e["device"] for e in r.got["context"]}
    used = {e["context"] for e in r.got["kernel"]}
    ok(len(used) == 6 and all(of[e["context"]] == e["device"] for e in r.got["kernel"]), "several contexts per device: each is described",
       of, used)
    r = Shimmed(newest, "-n", "20", cuda="mps=1")
    ok(r.status == 0 and {e["api"] for e in r.got["context"]} == {2} and len(r.got["kernel"]) == 200,
       "with MPS: contexts are marked, and all work is recorded", r.got["context"])


def execs():
    r = Shimmed(newest, "-x", "-n", "30")
    ok(r.status == 0 and r.states() == [STARTED, STARTED, STOPPED] and len(r.got["kernel"]) == 600,
       "a program that calls exec: both programs are traced", r.status, r.states(), len(r.got["kernel"]))


def profilers():
    r = Shimmed(newest, "-n", "400", "-p", "5000", cupti="taken_ms=1200", SONDE_CUPTI_RETRY_MS="300")
    ok(r.status == 0 and r.states() == [REFUSED, STARTED, STOPPED] and "Another Profiler 1.0" in r.got["shim"][0]["text"],
       "another profiler detaches: the shim starts then", r.got["shim"])
    compare("a profiler that leaves", r.truth, r.got, ("kernel", "memcpy", "memset", "call"), r.names, r.error)
    if newest != "13":
        return
    rival = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"rival{os.getpid()}")
    r = Shimmed(newest, "-n", "100000", "-p", "2000", wait=False, SHIM_RIVAL=rival, SONDE_CUPTI_RETRY_MS="200",
                SONDE_CUPTI_LOOK_MS="20")
    states = States(r.out)
    ok(states.wait_for(STARTED, 1), "another profiler attaches later: the shim keeps CUPTI")
    ok(wait_for(lambda: "refused" in (proc_files.read(rival) or ""), 60), "another profiler attaches later: it tries to")
    os.kill(r.child.pid, signal.SIGUSR2)
    ok(states.wait_for(STOPPED, 1), "another profiler attaches later: the tracer detaches")
    wait_for(lambda: "subscribed" in open(rival).read(), 60)
    os.kill(r.child.pid, signal.SIGUSR1)
    ok(states.wait_for(STARTED, 2), "another profiler attaches later: another tracer follows it")
    r.child.terminate()
    r.finish()
    log = open(rival).read().split("\n")
    ok(log[0] == "refused 39, sonde has it" and log[1:3] == ["subscribed", "left 0"],
       "another profiler attaches later: it is refused with the tool's name, and gets CUPTI when the tracer has detached", log)
    ok(r.states() == [STARTED, STOPPED, REFUSED, STARTED, STOPPED] and "rival" in r.got["shim"][2]["text"],
       "another profiler attaches later: meanwhile the shim reports which tool has CUPTI", r.got["shim"])
    # a tracer that detaches does not wait for running work
    compare("a profiler comes later", r.truth, r.got, ("kernel", "memcpy", "memset", "call"), r.names, r.error, unfinished=100)


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def again_and_again(rounds=100):
    r = Shimmed(newest, "-w", "-n", "1000000", "-p", "2000", "-k", "4", wait=False, SHIM_LATER="1", SONDE_CUPTI_LOOK_MS="10",
                cupti="ppm=100")
    r.child.stdout.readline()
    r.child.stdin.write("\n")
    r.child.stdin.flush()
    states, sizes, good = States(r.out), [], True
    for i in range(rounds):
        os.kill(r.child.pid, signal.SIGUSR1)
        good = good and states.wait_for(STARTED, i + 1)
        time.sleep(0.03)
        os.kill(r.child.pid, signal.SIGUSR2)
        good = good and states.wait_for(STOPPED, i + 1)
        sizes.append(resident_kb(r.child.pid))
    threads = len(os.listdir(f"/proc/{r.child.pid}/task"))
    r.child.terminate()
    r.finish()
    ok(good and r.states() == [STARTED, STOPPED] * rounds, f"{rounds} tracers, one after the other: each starts and ends",
       len(r.states()), collections.Counter(r.states()))
    compare(f"{rounds} tracers", r.truth, r.got, ("kernel", "memcpy", "memset", "call"), r.names, r.error, unfinished=20 * rounds)
    # memory of the first rounds stays allocated: names, a buffer
    ok(threads == 3 and sizes[-1] - sizes[9] < 8192, f"{rounds} tracers: they leave no thread and no memory", threads, sizes)
    ok(not r.got["dropped"], f"{rounds} tracers: nothing dropped", r.got["dropped"][:3])


for v in versions():
    failures(v)
hangs()
slow()
resets()
contexts()
execs()
profilers()
again_and_again()
done()

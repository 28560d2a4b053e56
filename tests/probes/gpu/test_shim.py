#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim without sonde, with doubles of CUDA and CUPTI of both versions. A consumer in the same process reads its records."""
# test: timeout=180 waits
import os
import shutil
import signal
import subprocess
import tempfile
import time

from shim_lib import (
    ALL,
    CONSUMER,
    GRAPHS,
    KERNELS,
    LEFT,
    NODES,
    REFUSED,
    STARTED,
    STOPPED,
    WAITING,
    Shimmed,
    States,
    compare,
    setting,
    sleeping_copy,
    training,
    versions,
)
import proc_files
from tap import done, ok
from waiting import wait_for

EVERYTHING = ("kernel", "memcpy", "memset", "sync", "memory", "call")


def check_run(label, r, kinds=EVERYTHING):
    ok(r.status == 0 and r.whole is True, f"{label}: the program succeeds, no batch is missing", r.status, r.errors, r.whole)
    ok(r.states()[:1] == [STARTED] and r.states()[-1:] == [STOPPED], f"{label}: started and stopped", r.got["shim"])
    ok(not r.got["dropped"], f"{label}: nothing dropped", r.got["dropped"])
    compare(label, r.truth, r.got, kinds, r.names, r.error)


def everything(version):
    r = Shimmed(version, "-d", "2", "-t", "2", "-s", "3", "-n", "40", cuda="devices=2",
                cupti=setting(ppm=100, jitter_ns=2000))
    check_run(f"CUDA {version}", r)
    untraced = [e for kind in ("kernel", "copy", "set", "sync", "memory") for e in r.truth[kind] if not e["traced"]]
    ok(not untraced, f"CUDA {version}: work is recorded from the first kernel on", untraced[:3])
    devices = {e["device"] for e in r.got["device"]}
    streams = {e["stream"] for e in r.got["stream"]}
    ok(devices == {0, 1} and streams == {e["stream"] for e in r.truth["stream"]} and len(r.got["context"]) >= 2,
       f"CUDA {version}: devices, contexts and streams are described", devices, streams, r.got["context"])
    k = r.got["kernel"][0]
    ok((k["grid_x"], k["grid_y"], k["block_x"], k["registers"], k["dynamic_shared"], k["cluster_x"]) == (64, 2, 128, 40, 1024, 1)
       and k["priority"] == (-3 if version == "13" else 0), f"CUDA {version}: a kernel's fields", k)
    calls = {e["correlation"] for e in r.got["call"]}
    ok({e["correlation"] for e in r.got["kernel"] + r.got["memcpy"] + r.got["memset"]} <= calls,
       f"CUDA {version}: each kernel, copy and memset has its call")
    rates = [e["drift_ppb"] for e in r.got["clock"][1:]]
    ok(not any(e["restarted"] for e in r.got["clock"]) and len(r.got["clock"]) > 1, f"CUDA {version}: the clock is monotonic", rates[:5])


def graphs(version):
    r = Shimmed(version, "-g", "-n", "30", groups=ALL | GRAPHS)
    check_run("graphs as a whole", r, EVERYTHING + ("graph",))
    ok(not [e for e in r.got["kernel"] if e["graph"]], "graphs as a whole: no nodes are recorded")
    r = Shimmed(version, "-g", "-n", "30", groups=ALL | GRAPHS | NODES)
    check_run("graphs by node", r)
    ok(not r.got["graph"] and len([e for e in r.got["kernel"] if e["graph_node"]]) == 90, "graphs by node: each node is recorded")


def many(version):
    r = Shimmed(version, "-d", "8", "-t", "8", "-s", "64", "-n", "10", "-k", "128", "-u", "5", cuda="devices=8")
    check_run("8 devices, 64 streams each", r)
    ok({e["device"] for e in r.got["kernel"]} == set(range(8)) and len({(e["context"], e["stream"]) for e in r.got["kernel"]}) == 512,
       "8 devices, 64 streams each: all are described")
    r = Shimmed(version, cuda="devices=0")
    ok(r.status == 1 and not r.got["kernel"], "no device: the program reports it", r.status, r.errors)
    r = Shimmed(version, "-n", "200", "-k", "500", "-u", "1", groups=KERNELS)
    check_run("100,000 kernels", r, ("kernel",))
    ok(not r.got["memcpy"] and not r.got["call"], "a group that is not requested is not recorded")


def exhausted(version):
    r = Shimmed(version, "-n", "60", "-k", "400", "-u", "1", groups=KERNELS, SONDE_CUPTI_BUFFERS="1", SHIM_SLOW_NS="20000000")
    lost = sum(e["records"] for e in r.got["dropped"] if e["reason"] == 1)
    kinds = ("kernel", "device", "context", "stream")
    made, reported = sum(e["traced"] for k in kinds for e in r.truth[k]), sum(len(r.got[k]) for k in kinds)
    unknown = sum(e["bytes"] for e in r.got["dropped"])
    ok(r.status == 0 and lost > 0 and unknown == 0 and reported + lost == made,
       "no free buffer: missing records are counted exactly", r.status, made, reported, lost, unknown)
    r = Shimmed(version, "-n", "5", cupti="drop=77")
    ok(sum(e["records"] for e in r.got["dropped"] if e["reason"] == 2) == 77, "records that CUPTI dropped are reported", r.got["dropped"])


def refusals(version):
    for label, cupti, words in (
            ("another profiler is there", "taken=1", "another profiler"),
            ("CUPTI fails", "subscribe=35", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
            ("CUPTI takes no buffers", "register=999", "no buffers")):
        r = Shimmed(version, "-n", "20", "-p", "2000", cupti=cupti)
        ok(r.status == 0 and r.states() == [REFUSED] and words in r.got["shim"][0]["text"] and not r.got["kernel"],
           f"{label}: the shim reports it once and stays inactive", r.status, r.got["shim"])
    if version == "13":
        r = Shimmed(version, cupti="taken=1")
        ok("Another Profiler 1.0" in r.got["shim"][0]["text"], "the other profiler's name is reported", r.got["shim"])
    r = Shimmed(version, "-n", "20", cupti="enable=27")
    ok(r.status == 0 and r.states() == [STARTED, STOPPED] and "not traced" in r.got["shim"][0]["text"],
       "an activity kind that CUPTI refuses is reported", r.got["shim"])
    r = Shimmed(version, "-n", "20", "-p", "1000", cupti="timestamp=1")
    ok(r.status == 0 and not r.got["clock"], "an unreadable clock does no harm", r.status)


def coming_and_going(version):
    label = "late, again, two at once"
    r = Shimmed(version, "-w", "-n", "100000", "-p", "1000", "-k", "4", wait=False, SHIM_LATER="1", cupti="ppm=50")
    r.child.stdout.readline()
    states = States(r.out)
    for i, (signum, state, n) in enumerate(((signal.SIGUSR1, STARTED, 1), (signal.SIGUSR1, STARTED, 2), (signal.SIGUSR2, LEFT, 1),
                                            (signal.SIGUSR2, STOPPED, 1), (signal.SIGUSR1, STARTED, 3), (signal.SIGUSR2, STOPPED, 2))):
        os.kill(r.child.pid, signum)
        ok(states.wait_for(state, n), f"{label}: state {state} for the {n}. time")
        if not i:
            r.child.stdin.write("\n")
            r.child.stdin.flush()
        time.sleep(0.4)
    r.child.terminate()
    r.finish()
    ok(r.states() == [STARTED, STARTED, LEFT, STOPPED, STARTED, STOPPED], f"{label}: states are in order", r.states(), r.status)
    # a tracer that detaches does not wait for running work
    compare(label, r.truth, r.got, ("kernel", "memcpy", "memset", "call"), r.names, r.error, unfinished=40)
    untraced = [e for e in r.truth["kernel"] if not e["traced"]]
    ok(untraced, f"{label}: CUPTI traced nothing in between")
    begins = [i["time"] for i in r.got["shim"] if i["state"] == STARTED]
    reported = {n["text"]: 0 for n in r.got["name"]}
    for n in r.got["name"]:
        reported[n["text"]] += 1
    ok(len(reported) == 4 and min(reported.values()) >= 2 and len(begins) == 3, f"{label}: each tracer gets the names", reported)


def switches(pid):
    """{(name, tid): voluntary context switches}"""
    threads = {tid: proc_files.status(pid, tid) for tid in proc_files.threads(pid)}
    return {(s["Name"], tid): int(s["voluntary_ctxt_switches"]) for tid, s in threads.items() if s}


def is_quiet(pid):
    """No thread wakes for more than half a second."""
    before = switches(pid)
    time.sleep(0.6)
    return before == switches(pid)


def dormant(version):
    asleep = sleeping_copy()
    r = Shimmed(version, "-w", "-n", "10", wait=False, SHIM_LATER="1", SONDE_CUPTI_WAIT="", LD_PRELOAD=f"{asleep}:{CONSUMER}",
                CUDA_INJECTION64_PATH=asleep)
    r.child.stdout.readline()
    # at first the shim looks for a tracer more often
    wait_for(lambda: is_quiet(r.child.pid), 60)
    before, began = switches(r.child.pid), time.monotonic()
    time.sleep(5)
    after, passed = switches(r.child.pid), time.monotonic() - began
    new = {k: after[k] - before.get(k, 0) for k in after}
    mine = [n for (name, _), n in new.items() if name == "sonde-cupti"]
    maps = open(f"/proc/{r.child.pid}/maps").read()
    ok(len(mine) == 1 and mine[0] <= passed + 1, f"dormant: wakes at most once a second ({mine} in {passed:.1f} s)", new)
    ok(sum(new.values()) == mine[0], "dormant: no other thread runs", new)
    ok("libcupti" not in maps, "dormant: CUPTI is not loaded")
    r.child.stdin.write("\n")
    r.finish()
    ok(r.status == 0 and not any(r.got.values()), "dormant: no batch is passed to the probe site", dict(r.got))
    shutil.rmtree(os.path.dirname(asleep))


def finding(version):
    r = Shimmed(version, "1", program="/bin/sleep", CUDA_INJECTION64_PATH="")
    ok(r.states() == [WAITING] and "libcuda is not loaded" in r.got["shim"][0]["text"], "a process without CUDA: the shim waits for CUDA",
       r.got["shim"])
    # CUDA alone, without CUPTI
    bare = tempfile.mkdtemp(prefix="sonde-bare-")
    for name in ("libcuda.so.1", f"libcudart.so.{version}", "fake_training"):
        shutil.copy(os.path.join(os.path.dirname(training(version)), name), bare)
    r = Shimmed(version, "-n", "5", program=os.path.join(bare, "fake_training"))
    # a real CUPTI may be installed, which fails without a GPU
    said = "CUPTI says" if "libcupti.so" in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout \
        else f"no libcupti.so.{version} was found"
    ok(r.status == 0 and r.states() == [REFUSED] and said in r.got["shim"][0]["text"], "no CUPTI: the shim reports what is missing",
       r.status, r.got["shim"], said)
    # the path in a CUDA toolkit
    os.makedirs(os.path.join(bare, "lib64"))
    os.makedirs(os.path.join(bare, "extras", "CUPTI", "lib64"))
    for name in ("libcuda.so.1", f"libcudart.so.{version}", "fake_training"):
        os.rename(os.path.join(bare, name), os.path.join(bare, "lib64", name))
    shutil.copy(os.path.join(os.path.dirname(training(version)), f"libcupti.so.{version}"),
                os.path.join(bare, "extras", "CUPTI", "lib64"))
    r = Shimmed(version, "-n", "5", program=os.path.join(bare, "lib64", "fake_training"))
    ok(r.status == 0 and r.states() == [STARTED, STOPPED] and len(r.got["kernel"]) == 50, "CUPTI in a toolkit's extras is found",
       r.status, r.got["shim"])
    shutil.rmtree(bare)


def forks(version):
    r = Shimmed(version, "-f", "-n", "30", cupti="ppm=100")
    check_run("forks in between", r)


for v in versions():
    everything(v)
newest = versions()[-1]
graphs(newest)
many(newest)
exhausted(newest)
for v in versions():
    refusals(v)
coming_and_going(newest)
finding(newest)
dormant(newest)
forks(newest)
done()

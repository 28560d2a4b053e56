#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""The object of an off-CPU wait, without family syscall: the file, the process at its other end, the futex, the timeout."""
import json
import os

from recording import EVENT_OPEN, Recording
from tap import done, ok

HERE = os.path.dirname(os.path.abspath(__file__))
SOCKET, PIPE, ANON = 1, 2, 3
STREAM = 1
NR = {"read": 0, "poll": 7, "select": 23, "pselect6": 270, "recvfrom": 45, "futex": 202, "clock_nanosleep": 230, "epoll_wait": 232}
KIND = 3 << 62  # flag of a file's end
LONG = 15_000_000  # shortest duration that counts as a wait of 20 ms



def record():
    """(recording, the program's output, the trace's files, processes at other ends, {tid: long waits})"""
    rec = Recording(["/usr/bin/python3", os.path.join(HERE, "wait_work.py")], "sample", ["--off-cpu"], stop_at="{")
    peers, waits = {}, {}
    for e in rec.trace.events("syscall_peer"):
        peers.setdefault(e.get("other_end", 0), []).append(e)
    for e in rec.of("sample_off"):
        if e["time"] - e["start"] > LONG:
            waits.setdefault(e["tid"], []).append(e)
    return rec, json.loads(rec.output[-1]), {e["file"]: e for e in rec.of("syscall_file")}, peers, waits


def of(name, *calls):
    """(waits of this thread in these calls, their files)"""
    found = [e for e in waits.get(said["waits"][name]["tid"], []) if e.get("in_call") and e.get("nr", 0) in [NR[c] for c in calls]]
    # the program also waited for its start
    found = [e for e in found if files.get(e.get("file", 0), {}).get("ino") != said["stdin"]]
    return found, [files[e["file"]] for e in found if e.get("file", 0) in files]


def comms(file):
    end = file.get("other_end", 0)
    return {(e["pid"], e["comm"].decode() if isinstance(e["comm"], bytes) else e["comm"]) for e in peers.get(end, [])} if end else set()


def check(name, calls, is_file):
    found, theirs = of(name, *calls)
    # on a busy machine a byte may arrive before the thread waits for it
    ok(len(found) >= 3, f"{name}: the waits have the call's number", f"{len(found)} of {waits.get(said['waits'][name]['tid'])}")
    ok(len(theirs) == len(found) and all(is_file(f) for f in theirs), f"{name}: the waits have the descriptor's file", theirs[:2])
    return found, theirs


def check_pipes():
    check("pipe_read", ["read"], lambda f: f["kind"] == PIPE and f["ino"] == truth["pipe_read"]["ino"])
    _, theirs = check("child_pipe", ["read"], lambda f: f["kind"] == PIPE and f["ino"] == truth["child_pipe"]["ino"])
    ok(theirs and (truth["child_pipe"]["child"], "slow_writer") in comms(theirs[0]) and
       said["pid"] not in {pid for pid, _ in comms(theirs[0])}, "child_pipe: the process at the other end", theirs and comms(theirs[0]))
    found = theirs and [e["pid"] for e in peers.get(theirs[0]["other_end"], [])]
    ok(found and len(found) == len(set(found)), "child_pipe: the process is listed once, regardless of its number of descriptors", found and len(found))
    titles = [(e["pid"], e["text"]) for e in rec.trace.events("syscall_title")]
    ok(titles == [(truth["child_pipe"]["child"], "slow_writer: UPDATE  [1mwaiting")], "child_pipe: the title of that process alone", titles)
    found, theirs = of("hang", "read")
    ok(len(found) == 1 and found[0].get("flags", 0) & EVENT_OPEN, "hang: a wait that lasts until the end", found)
    ok(theirs and (truth["hang"]["child"], "silent_writer") in comms(theirs[0]), "hang: the process at the other end",
       theirs and comms(theirs[0]))


rec, said, files, peers, waits = record()
truth = said["waits"]
check_pipes()
listeners = [(e["pid"], e["type"]) for e in peers.get(0, []) if e["local_port"] == truth["unaccepted"]["peer"]]
ok(listeners == [(truth["hang"]["child"], STREAM)], "unaccepted: the listener, not a UDP socket of that port", listeners)
for name, calls in (("tcp_recv", ["recvfrom"]), ("poll_one", ["poll"])):
    ends = (SOCKET, truth[name]["peer"], truth[name]["local"], 0x100007f)
    found, theirs = check(name, calls, lambda f, ends=ends: (f["kind"], f["peer_port"], f["local_port"], f["peer0"]) == ends)
    ok(theirs and {pid for pid, _ in comms(theirs[0])} == {said["pid"]}, f"{name}: the process at the other end",
       theirs and comms(theirs[0]))
    listeners = {e["pid"] for e in peers.get(0, []) if e["local_port"] == truth[name]["peer"]}
    ok(listeners == {said["pid"]}, f"{name}: the process that listens there", listeners)
ok(found and all(e["timeout"] == truth["poll_one"]["timeout"] for e in found), "poll_one: the timeout", [e["timeout"] for e in found])
found, theirs = check("select_one", ["select", "pselect6"], lambda f: f["kind"] == SOCKET and f["ino"] == truth["select_one"]["ino"])
ok(theirs and theirs[0]["other_end"] & ~KIND == truth["select_one"]["peer_ino"], "select_one: the socket at the other end", theirs[:1])
ok(found and all(e.get("timeout", 0) == -1 for e in found), "select_one: no limit", [e.get("timeout") for e in found])
_, theirs = check("unix_recv", ["recvfrom"], lambda f: f["kind"] == SOCKET and truth["unix_recv"]["path"] in str(f["path"]))
ok(theirs and theirs[0]["peer_pid"] == said["pid"], "unix_recv: the process that listened", theirs[:1])
found, _ = of("futex", "futex")
ok(len(found) >= 3 and all(e["futex"] == truth["futex"]["address"] for e in found), "futex: its address",
   [hex(e.get("futex", 0)) for e in found])
for name, calls in (("futex", ["futex"]), ("nap", ["clock_nanosleep"]), ("epoll", ["epoll_wait"])):
    found, _ = of(name, *calls)
    # A nap ends at an absolute time. sonde's timeout is what is left when the thread leaves the CPU, which may be late.
    timeout = truth[name]["timeout"]
    right = [0 < e["timeout"] <= min(timeout, e["time"] - e["start"]) if name == "nap" else e["timeout"] == timeout for e in found]
    ok(len(found) >= 3 and all(right), f"{name}: the timeout", [(e.get("timeout"), e["time"] - e["start"]) for e in found])
_, theirs = of("epoll", "epoll_wait")
ok(theirs and all(f["kind"] == ANON for f in theirs), "epoll: no file", theirs[:1])
ok(not [e for e in rec.of("sample_off") if e.get("reason", 0) == 2 and e.get("futex", 0)], "no futex of the GIL")



def check_older(how):
    global rec, said, files, peers, waits, truth
    rec, said, files, peers, waits = record()
    truth = said["waits"]
    check_pipes()
    some, its = of("select_one", "select", "pselect6")
    ok(len(some) >= 3 and len(its) in {0, len(some)}, f"select_one, {how}: its file, if the sets were still there", its[:1])
    ok(how == "before 6.15" or not its, f"select_one, {how}: not if the kernel has overwritten them", its[:1])
    some, _ = of("futex", "futex")
    ok(len(some) >= 3 and all(e["futex"] == truth["futex"]["address"] for e in some), f"futex, {how}: its address", len(some))
    ok(all(e.get("stack", 0) for e in some), f"futex, {how}: its stack", len(some))


# before Linux 6.15 waits are described when schedule() returns, else when the calls return and the kernel has
# overwritten the sets
os.environ["SONDE_TEST"] = "no-sched-exit"
check_older("before 6.15")
os.environ["SONDE_TEST"] = "no-sched-exit,no-fexit"
check_older("at the call's return")
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 gate
"""sonde is killed by SIGKILL at 50 random moments while it traces a program that calls the real libcudart. Every
other time its whole process group is killed, as `timeout -s KILL` does.

Every trace must open and verify and lack at most the last second; each of its zstd frames must pass `zstd -t`;
the target must continue, and its code must equal its file.
"""
import collections
import concurrent.futures
import glob
import itertools
import json
import os
import random
import signal
import subprocess
import time

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
TMP = os.environ["TMPDIR"]
import proc_files
from process_text import text_differs
from recording import steal_ns
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import wait_for

KILLS = int(os.environ.get("KILLS", 50))
seed = int(os.environ.get("SEED", time.time_ns() & 0xffffff))
rng = random.Random(seed)
numbers = itertools.count(1)
MISSING_MAX = 1_000_000_000  # ns before the kill that a trace may lack
# problem: why, if one of the others is False
Outcome = collections.namedtuple("Outcome", "opens verifies whole is_fresh problem")
MARK = f"SONDE_TEST_KILL={os.getpid()}-{time.time_ns()}"  # in the environment of the processes that this test starts
os.environ.update([MARK.split("=")])


def whole_frames_pass(path):
    """Runs `zstd -t` on the file without the tail that `sonde info` reports as torn."""
    info = json.loads(subprocess.run([SONDE, "info", path, "--format", "json"], capture_output=True, check=True).stdout)
    torn = find(info, "torn_bytes") or 0
    size = os.path.getsize(path) - torn
    with open(path, "rb") as f:
        whole = f.read(size)
    done = subprocess.run(["zstd", "-t", "-q"], input=whole, capture_output=True)
    return done.returncode == 0, done.stderr.decode(), info


def find(tree, key):
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            got = find(item, key)
            if got is not None:
                return got
    return None


def last_event(path):
    last = 0
    for kind in ("cuda_alloc", "cuda_free", "cuda_copy", "cuda_launch", "cuda_sync"):
        for event in Trace(path).events(kind):
            last = max(last, event["time"])
    return last


def attachers():
    """(attacher processes of this test, attacher processes of other recordings on the machine)"""
    own, foreign = [], []
    for comm in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(comm) as f:
                if f.read() != "sonde-attacher\n":
                    continue
            with open(comm[:-len("comm")] + "environ", "rb") as f:
                (own if MARK.encode() in f.read().split(b"\0") else foreign).append(comm)
        except OSError:
            pass
    return own, foreign


def leaks():
    """The kernel's messages about probes that it could not remove; None if the log can't be read."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace")
    return None if log.returncode else {line for line in log.stdout.splitlines() if "leaking uprobe" in line}


def check_text(pid):
    """Compares the target's code with its file, unless another sonde on the machine may have probes in it."""
    wait_for(lambda: not text_differs(pid, "libcudart"), pause=0.1)
    differing, foreign = text_differs(pid, "libcudart"), attachers()[1]
    if differing and foreign:
        skip("the target's code equals its file", f"another sonde traces this machine: {foreign}")
    else:
        ok(differing == 0, "the target's code equals its file", f"{differing} bytes differ")


def in_group(pid):
    """The names of the processes in sonde's process group"""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                _, name, rest = f.read().replace("(", ")").split(")", 2)
        except (OSError, ValueError):
            continue
        if int(rest.split()[2]) == pid:
            found.append(name)
    return found


def killed_with_its_group():
    """The attacher must be in another process group: SIGKILL would end it while it removes probes."""
    sonde = subprocess.Popen([SONDE, "record", "-o", os.path.join(TMP, "group.sonde"), "-t", "cuda"],
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
    begun = any("tracing into" in line for line in sonde.stderr)
    group, own = in_group(sonde.pid), attachers()[0]
    os.killpg(sonde.pid, signal.SIGKILL)
    sonde.communicate()
    # the children that parse or search for files have no probes
    group = [name for name in group if name not in ("sonde-examiner", "sonde-file", "sonde-search")]
    ok(begun and group == ["sonde"], "the attacher is in another process group than sonde", group)
    ok(bool(own), "this test recognizes the attacher as its own while it runs", own)


def family(pid):
    """A process, its children and their children"""
    return [pid, *(p for child in proc_files.children(pid) for p in family(child))]


def killed_once(number_and_chance):
    """
    Kills a recording at a random moment. Returns the Outcome, or None if it had made no file yet. is_fresh is None if the machine did not let
    the recording run for the time that its trace lacks.
    """
    number, chance = number_and_chance
    path = os.path.join(TMP, f"{number}.sonde")
    steal = steal_ns()
    sonde = subprocess.Popen([SONDE, "record", "-o", path, "-t", "cuda"], stderr=subprocess.DEVNULL, start_new_session=True)
    # every other time while sonde starts, attaches or is about to write its first chunk
    time.sleep(0.3 + 1.9 * chance if number % 2 else 0.05 + 0.95 * chance)
    kept_waiting = sum(proc_files.runnable_ns(pid) for pid in family(sonde.pid)) + steal_ns() - steal
    killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if number // 2 % 2:
        os.killpg(sonde.pid, signal.SIGKILL)
    else:
        sonde.send_signal(signal.SIGKILL)
    sonde.wait()
    if not os.path.exists(path):
        return None
    report = subprocess.run([SONDE, "report", path], capture_output=True)
    if report.returncode:
        return Outcome(False, False, False, False, f"run {number}: {report.stderr.decode()}")
    verifies = subprocess.run([SONDE, "info", path, "--verify"], capture_output=True).returncode == 0
    whole, why, info = whole_frames_pass(path)
    # the target calls without pause, so that the newest call in the trace shows how much is missing
    live = [row["live_ns"] for row in find(info, "objects") or [] if row.get("live_ns")]
    last = last_event(path)
    missing = killed - max([last, *live]) if last or live else killed - Trace(path).head["clocks"]["monotonic"]
    os.unlink(path)
    is_fresh = missing <= MISSING_MAX
    if MISSING_MAX < missing <= MISSING_MAX + kept_waiting:
        print(f"# run {number}: {missing / 1e9:.3f} s are missing, and sonde waited {kept_waiting / 1e9:.3f} s for a CPU; killed again")
        is_fresh = None
    problem = "" if verifies else f"run {number}: it does not verify"
    if not whole:
        problem = f"run {number}: zstd -t: {why}"
    elif is_fresh is False:
        problem = f"run {number}: the last {missing / 1e9:.3f} s are missing"
    return Outcome(True, verifies, whole, is_fresh, problem)


def main():
    workloads = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
    if not workloads:
        skip("killed at 50 random moments", "no CUDA runtime library is available")
        done()
    print(f"# SEED={seed}")
    before = leaks()
    killed_with_its_group()
    target = subprocess.Popen([workloads[0], "600"])
    wait_for(lambda: "libcudart" in (proc_files.read(f"/proc/{target.pid}/maps") or ""))
    outcomes, judged, early = [], [], 0
    try:
        # a recording mostly waits, so two are killed at once
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            while len(judged) < KILLS and early < 4 * KILLS:
                found = list(pool.map(killed_once, [(next(numbers), rng.random()) for _ in range(min(10, KILLS - len(judged)))]))
                outcomes += [o for o in found if o]
                judged = [o for o in outcomes if o.is_fresh is not None]
                early += sum(not o or o.is_fresh is None for o in found)
        why = "; ".join([o.problem for o in outcomes if o.problem][:5])
        print(f"# {early} more made no file before they were killed, or waited for a CPU")
        ok(len(judged) == KILLS, f"{KILLS} made a trace and did not wait for a CPU", len(judged), len(outcomes))
        ok(all(o.opens for o in outcomes), "all traces open", why)
        ok(all(o.verifies for o in outcomes), "all traces verify", why)
        ok(all(o.whole for o in outcomes), "zstd -t accepts every complete frame", why)
        ok(all(o.is_fresh for o in judged), "at most the last second is missing", why)
        ok(target.poll() is None, "the target continues", f"it ended with {target.returncode}")
        # the attacher removes its probes when sonde has ended, then ends
        wait_for(lambda: not attachers()[0])
        ok(not attachers()[0], "no process of sonde is left", attachers())
        check_text(target.pid)
        if before is None:
            skip("the kernel removed every probe", "the kernel log can't be read")
        else:
            new = leaks() - before
            ok(not new, "the kernel removed every probe", new)
    finally:
        target.kill()
        target.wait()


main()
done()

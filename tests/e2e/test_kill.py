#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""sonde is killed with -9 at 50 random moments while it traces a program that calls the real libcudart: every
other time its whole process group is, as `timeout -s KILL` does it.

Every trace must open and verify; at most the last second may be missing from it; each of its zstd
frames must pass `zstd -t`; the target must run on and its text must be that of its file.
"""
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
TMP = os.environ["TMPDIR"]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from process_text import text_differs
from sonde_trace import Trace
from tap import done, ok, skip

KILLS = int(os.environ.get("KILLS", 50))
seed = int(os.environ.get("SEED", time.time_ns() & 0xffffff))
rng = random.Random(seed)
MARK = f"SONDE_TEST_KILL={os.getpid()}-{time.time_ns()}"  # in the environment of what is started here
os.environ.update([MARK.split("=")])



def whole_frames_pass(path):
    """`zstd -t` over the file without the tail that `sonde info` calls torn."""
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
    """The processes that have probes: of this test's sonde, and of any other on the machine."""
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
    """What the kernel says of probes that it could not take off; None: its log can't be read."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace")
    return None if log.returncode else {line for line in log.stdout.splitlines() if "leaking uprobe" in line}


def check_text(pid):
    """Another sonde on the machine has its probes in the target, too: then its text is another's matter."""
    foreign = []
    for _ in range(50):
        foreign = attachers()[1]
        differing = text_differs(pid, "libcudart")
        if not differing:
            break
        time.sleep(0.1)
    if differing and foreign:
        skip("the target's text equals its file", f"another sonde traces this machine: {foreign}")
    else:
        ok(differing == 0, "the target's text equals its file", f"{differing} bytes differ")


def in_group(pid):
    """Names of the processes in sonde's process group."""
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
    """Processes that have probes are not of the group: SIGKILL would end them in the middle of taking probes off."""
    sonde = subprocess.Popen([SONDE, "record", "-o", os.path.join(TMP, "group.sonde"), "-t", "cuda"],
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
    begun = any("tracing into" in line for line in sonde.stderr)
    group, own = in_group(sonde.pid), attachers()[0]
    os.killpg(sonde.pid, signal.SIGKILL)
    sonde.communicate()
    # those that parse files have no probes
    group = [name for name in group if name not in ("sonde-examiner", "sonde-file")]
    ok(begun and group == ["sonde"], "the process that has the probes is in another process group than sonde", group)
    ok(bool(own), "that process is known for this test's own while it is there", own)


def main():
    workloads = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
    if not workloads:
        skip("killed at 50 random moments", "no CUDA runtime library could be had")
        done()
    print(f"# SEED={seed}")
    before = leaks()
    killed_with_its_group()
    target = subprocess.Popen([workloads[0], "600"])
    time.sleep(0.3)
    opened = verified = fresh = framed = 0
    problems = []
    early = traces = i = 0
    try:
        while traces < KILLS and i < 5 * KILLS:
            i += 1
            path = os.path.join(TMP, f"{i}.sonde")
            sonde = subprocess.Popen([SONDE, "record", "-o", path, "-t", "cuda"], stderr=subprocess.DEVNULL,
                                     start_new_session=True)
            # every other one while it starts, attaches or is about to write its first chunk
            time.sleep(rng.uniform(0.3, 2.2) if i % 2 else rng.uniform(0.05, 1))
            killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            if i // 2 % 2:
                os.killpg(sonde.pid, signal.SIGKILL)
            else:
                sonde.send_signal(signal.SIGKILL)
            sonde.wait()
            if not os.path.exists(path):
                early += 1
                continue
            traces += 1
            report = subprocess.run([SONDE, "report", path], capture_output=True)
            opened += report.returncode == 0
            if report.returncode:
                problems.append(f"run {i}: {report.stderr.decode()}")
                continue
            verify = subprocess.run([SONDE, "info", path, "--verify"], capture_output=True)
            verified += verify.returncode == 0
            passes, why, info = whole_frames_pass(path)
            framed += passes
            if not passes:
                problems.append(f"run {i}: zstd -t: {why}")
            # calls are made all the time: the newest one in the trace says how much is missing
            live = [row["live_ns"] for row in find(info, "objects") or [] if row.get("live_ns")]
            last = last_event(path)
            missing = killed - max([last, *live]) if last or live else killed - Trace(path).head["clocks"]["monotonic"]
            fresh += missing <= 1_000_000_000
            if missing > 1_000_000_000:
                problems.append(f"run {i}: the last {missing / 1e9:.3f} s are missing")
            os.unlink(path)
        why = "; ".join(problems[:5])
        print(f"# {early} more were killed before they had made a file")
        ok(traces == KILLS, f"{KILLS} made a trace", f"{traces} of {i}")
        ok(opened == KILLS, f"{KILLS} traces open", why)
        ok(verified == KILLS, f"{KILLS} traces verify", why)
        ok(framed == KILLS, "zstd -t accepts every complete frame", why)
        ok(fresh == KILLS, "at most the last second is missing", why)
        ok(target.poll() is None, "the target runs on", f"it ended with {target.returncode}")
        for _ in range(100):  # the attacher takes them off when sonde is gone, and ends
            if not attachers()[0]:
                break
            time.sleep(0.1)
        ok(not attachers()[0], "no process of sonde's is left", attachers())
        check_text(target.pid)
        if before is None:
            skip("the kernel took every probe off", "its log can't be read")
        else:
            new = leaks() - before
            ok(not new, "the kernel took every probe off", new)
    finally:
        target.kill()
        target.wait()


main()
done()

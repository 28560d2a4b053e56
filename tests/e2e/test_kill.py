#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 gate
"""sonde is killed by SIGKILL at 50 random moments while it traces a program that calls the real libcudart. Every
other time its whole process group is killed, as `timeout -s KILL` does.

Every trace must open and verify and lack at most the last second; each of its zstd frames must pass `zstd -t`;
the target must continue, and its code must equal its file.
"""
import glob
import json
import os
import random
import signal
import subprocess
import time

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
TMP = os.environ["TMPDIR"]
from process_text import text_differs
from sonde_trace import Trace
from tap import done, ok, skip

KILLS = int(os.environ.get("KILLS", 50))
seed = int(os.environ.get("SEED", time.time_ns() & 0xffffff))
rng = random.Random(seed)
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
    foreign = []
    for _ in range(300):
        foreign = attachers()[1]
        differing = text_differs(pid, "libcudart")
        if not differing:
            break
        time.sleep(0.1)
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
    # the children that parse files have no probes
    group = [name for name in group if name not in ("sonde-examiner", "sonde-file")]
    ok(begun and group == ["sonde"], "the attacher is in another process group than sonde", group)
    ok(bool(own), "this test recognizes the attacher as its own while it runs", own)


def main():
    workloads = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
    if not workloads:
        skip("killed at 50 random moments", "no CUDA runtime library is available")
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
            # every other time while sonde starts, attaches or is about to write its first chunk
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
            # the target calls without pause, so that the newest call in the trace shows how much is missing
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
        ok(target.poll() is None, "the target continues", f"it ended with {target.returncode}")
        for _ in range(100):  # the attacher removes its probes when sonde has ended, then ends
            if not attachers()[0]:
                break
            time.sleep(0.1)
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

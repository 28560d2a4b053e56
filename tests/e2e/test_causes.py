#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four programs, each slow for a known reason: `summary` and `offcpu` name it first, and the parts of a thread add up to its time."""
import json
import os
import re
import subprocess
import tempfile

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
import bounds
import pairs_lib
from recording import Recording
from tap import done, ok, skip

SLOW = os.path.join(B, "tests", "workloads", "slow")
FAMILIES = "proc,sched,syscall,lock,disk"
OPTIONS = ("--sched=all",)


def report(rec, name, *options):
    done = subprocess.run([SONDE, "report", rec.path, name, *options], capture_output=True, text=True, check=True)
    return done.stdout


FAMILY_DISK, LOSS_RETURN = 0x08, 5  # bpf/probes/disk/disk.h, bpf/core/meta.h
OPEN, RETURN_NOT_SEEN = 1, 2  # bpf/core/event.h
BLOCKED = 2  # enum sched_state


def tables(rec, name):
    return json.loads(report(rec, name, "--format", "json"))["tables"]


class Planted:
    def lost(self):
        """Lost records, without the ends of block requests for which the kernel runs no program (docs/disk.md)."""
        unseen = sum(e["count"] for e in self.rec.trace.events("meta_loss")
                     if (e["family"], e["reason"]) == (FAMILY_DISK, LOSS_RETURN))
        return f" {unseen} lost" not in self.rec.messages

    def __init__(self, mode, word, *args, recorded=None):
        self.mode = mode
        self.rec = recorded or Recording([SLOW, mode, *args], FAMILIES, OPTIONS)
        said = [line.split() for line in self.rec.output]
        self.threads = {int(s[1]): (int(s[2]), int(s[3])) for s in said if s[0] == "thread"}
        self.said = {s[0]: s[1:] for s in said}
        ok(self.rec.status == 0 and not self.lost(), f"{mode}: recorded without loss", self.rec.messages)
        self.first = {}
        for name in ("summary", "offcpu"):
            self.first[name] = json.loads(report(self.rec, name, "--format", "json"))["findings"][0]["text"]
            rows = tables(self.rec, name)["causes"]
            ok(rows and (rows[0]["pid"], rows[0]["cause"]) == (self.rec.pid, word),
               f"{mode}: {name} names the cause first: {word}", rows[:2])
            ok(str(self.rec.pid) in self.first[name], f"{mode}: {name}: the first sentence names the cause", self.first[name])
        bad = pairs_lib.wrong(self.rec.path)
        ok(not bad, f"{mode}: in all reports each mean is the time divided by the count", bad[:3])
        self.row = tables(self.rec, "offcpu")["causes"][0]
        self.tile()

    def tile(self):
        """The time on a CPU, runnable and in each wait adds up to the time by the program's own clock."""
        found = tables(self.rec, "offcpu")
        for tid, (begin, end) in self.threads.items():
            wall = end - begin
            # a new thread may wait for a CPU before its first instruction, which its own clock does not include
            spans = [e for k in ("sched_run", "sched_off") for e in self.rec.of(k) if e["tid"] == tid]
            outside = sum(max(0, min(e["time"], begin) - e["start"]) + max(0, e["time"] - max(e["start"], end)) for e in spans)
            row = next((r for r in found["threads"] if r["tid"] == tid), None)
            waits = sum(r["wait_ns"] for r in found["waits"] if r["tid"] == tid)
            total = row and row["run_ns"] + row["runnable_ns"] + waits - outside
            ok(total == wall, f"{self.mode}: the parts of a thread add up to its time", f"{total} of {wall} ns")

    def says(self, pattern, what):
        for name, text in self.first.items():
            ok(re.search(pattern, text), f"{self.mode}: {name} shows {what}", pattern, text)


def convoy():
    p = Planted("convoy", "lock")
    p.says(re.escape(p.said["lock"][0]), "the lock")
    p.says(r"\([2-4] threads\) waited \d+% of [0-9.]+ s for a lock: [\d,]+ waits", "how long")
    p.says(r"held by", "who had it")


def sleeper():
    p = Planted("sleep", "sleep")
    p.says(r"slept \d+% of \d+\.\d+ s: 40 times in (clock_)?nanosleep, [\d.]+ ms each", "how often and where")
    _, most, least = map(int, p.said["slept"])
    bounds.between("sleep: for as long as by the program's own clock", p.row["what_ns"], least, most)


def has_requests(path):
    dev = os.stat(path).st_dev
    link = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
    return os.path.exists(link + "/mq") or os.path.exists(link + "/../mq")


def disk():
    if not has_requests(TMP):
        return skip("disk: a process that reads uncached data", f"{TMP} is not on a disk with requests")
    path = os.path.join(TMP, "cold-file")
    p = Planted("disk", "disk", path)
    p.says(r"waited \d+% of \d+\.\d+ s for the disk.*; [\d,]+ reads of \S*/cold-file \(\w+\), [0-9.]+ [mu]s each", "the file and the disk")
    reads, ns = map(int, p.said["reads"])
    reported = re.search(r"; ([\d,]+) reads of .*?, ([0-9.]+) ([mu]s) each", p.first["offcpu"])
    each = float(reported[2]) * (1000 if reported[3] == "us" else 1000000)
    # the report leaves out the reads whose end was not seen
    unseen = sum(bool(e["flags"] & (OPEN | RETURN_NOT_SEEN)) for e in p.rec.of("disk_io"))
    ok(int(reported[1].replace(",", "")) + unseen == reads, "disk: the number of reads is the program's", f"{reported[1]} and {unseen} of {reads}")
    # a request does not last as long as the call, but for most of the sleep within it: the rest is the way from its
    # end to the wake-up
    asleep = sum(e["wake"] - e["start"] for e in p.rec.of("sched_off") if e["state"] == BLOCKED and e["wake"])
    bounds.between("disk: the time of a read is within the call's by the program's own clock", each, asleep / reads / 2, ns / reads)
    return None


def mounts():
    with open("/proc/mounts") as f:
        return [line.split() for line in f]


def write(directory, name, text):
    with open(os.path.join(directory, name), "w") as f:
        f.write(text)


def stat(directory):
    with open(os.path.join(directory, "cpu.stat")) as f:
        values = {k: int(v) for k, v in (line.split() for line in f)}
    return values["nr_periods"], values["nr_throttled"], values.get("throttled_time", values.get("throttled_usec", 0) * 1000)


def make_v1():
    """Mounts a cgroup v1 hierarchy with the cpu controller. Returns its directory, or why there is none."""
    where = [m[1] for m in mounts() if m[2] == "cgroup" and "cpu" in m[3].split(",")]
    if not where:
        return None, "no cgroup v1 hierarchy with the cpu controller is mounted"
    try:
        d = tempfile.mkdtemp(prefix="sonde-test-", dir=where[0])
        write(d, "cpu.cfs_period_us", "100000")
        write(d, "cpu.cfs_quota_us", "20000")
    except OSError as e:
        return None, f"cannot make a cgroup in {where[0]}: {e.strerror}"
    return d, None


def make_v2():
    where = [m[1] for m in mounts() if m[2] == "cgroup2"]
    if not where:
        return None, "no cgroup v2 hierarchy is mounted"
    with open(os.path.join(where[0], "cgroup.controllers")) as f:
        if "cpu" not in f.read().split():
            return None, f"{where[0]} does not have the cpu controller: cgroup v1 does"
    try:
        write(where[0], "cgroup.subtree_control", "+cpu")
        d = tempfile.mkdtemp(prefix="sonde-test-", dir=where[0])
        write(d, "cpu.max", "20000 100000")
    except OSError as e:
        return None, f"cannot make a cgroup in {where[0]}: {e.strerror}"
    return d, None


class InCgroup(Recording):
    """Moves the program into the cgroup before it begins, and reads the kernel's counts of the cgroup."""

    def __init__(self, directory, *args):
        self.directory = directory
        super().__init__(*args)

    def _wait_for(self, text):
        write(self.directory, "cgroup.procs", str(self.pid))
        super()._wait_for(text)
        self.before = stat(self.directory)


def quota(version, directory, why):
    if not directory:
        return skip(f"a CPU quota of cgroup {version}", why)
    try:
        # without --sched=all: a program that a filter selects needs no runtime
        rec = InCgroup(directory, [SLOW, "spin"], FAMILIES)
        counted = [b - a for a, b in zip(rec.before, stat(directory))]
    finally:
        os.rmdir(directory)
    p = Planted("spin", "cpu-quota", recorded=rec)
    name = os.path.basename(directory)
    p.says(rf"throttled by its CPU quota.*: cgroup \S*/{name};.* its quota is 20.000 ms of CPU time in each 100.000 ms", f"the cgroup ({version})")
    events = [e for e in rec.of("sched_throttle") if e["cgroup"].endswith(name)]
    reported = [sum(e[k] for e in events) for k in ("periods", "throttled_periods", "throttled")]
    ok(0 < counted[1] <= reported[0] <= counted[0], f"{version}: the periods are those of cpu.stat", f"{reported}, cpu.stat {counted}")
    why = "the kernel counts for a while after the process has ended, and its last period may be incomplete"
    bounds.within(f"{version}: the number of throttlings is that of cpu.stat", reported[1], counted[1], 1, why)
    bounds.within(f"{version}: so is their time", reported[2], counted[2], 100_000_000, why)
    return None


convoy()
sleeper()
disk()
quota("v1", *make_v1())
quota("v2", *make_v2())
done()

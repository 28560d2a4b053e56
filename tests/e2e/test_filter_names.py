#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
# (perf events are attached and detached one by one: some 50 ms each)
"""--comm and --cgroup: a process is recorded while its name matches or while it is in the cgroup, exactly from the first call
after a rename, an exec or a move to the last call before the next one. Combined with -p or each other they are intersected."""
import os

from puppet import TMP, Puppet, allocs, numbered
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

MODES = {"": "session links", "no-session": "multi links", "no-session,no-multi": "perf events"}


def trace_path(name):
    return os.path.join(TMP, name.replace(",", "-") + ".sonde")


def members(trace, pid):
    return [(e["member"], e["exec"], e["comm"]) for e in sorted(trace.events("meta_member"), key=lambda e: e["time"])
            if e["pid"] == pid]


def by_name(mode, how):
    link = os.path.join(TMP, "pupq")
    if not os.path.islink(link):
        os.symlink("/usr/bin/python3", link)
    early, late, other = Puppet(), Puppet(), Puppet()
    early.do("name pupp")
    late.do("name stranger")
    other.do("thread_name pupp")
    families = "cuda,proc,sched,syscall" if not mode else "cuda"
    sonde = Sonde(trace_path("comm" + mode), "-t", families, *(["--sched=all"] if not mode else []), "--comm", "none*,pup[pq]",
                  "--comm", "zz?", mode=mode)
    want = []
    early.do("calls 1 5")
    want += numbered(early.pid, 1, 5)
    late.do("calls 100 5")
    other.do("calls 150 5")
    late.do("name pupq")
    late.do("calls 200 5")
    want += numbered(late.pid, 200, 5)
    late.do("thread_name stranger")
    late.do("calls 210 5")
    want += numbered(late.pid, 210, 5)
    if not mode:
        # once it is introduced, families that need its threads follow it
        sonde.wait_trace(lambda trace: any(e["pid"] == late.pid for e in trace.events("proc_image")))
    late.do("name stranger")
    late.do("calls 300 5")
    late.do("name zzz")
    late.do("calls 400 5")
    want += numbered(late.pid, 400, 5)
    late.do("name zzzz")
    late.do("calls 500 5")
    want += numbered(int(early.do("fork 600 5")), 600, 5)
    early.exec("/usr/bin/python3")
    early.do("calls 700 5")
    other.exec(link)
    other.do("calls 800 5")
    want += numbered(other.pid, 800, 5)
    for p in (early, late, other):
        p.end()
    status = sonde.end()
    trace = Trace(sonde.path)
    got = allocs(trace)
    ok(status == 0, f"--comm, {how}: recorded", sonde.messages)
    ok(got == sorted(want), f"--comm, {how}: exactly the calls under a matching name, each once",
       f"missing {sorted(set(want) - set(got))}\nsurplus {sorted(set(got) - set(want))}")
    ok(members(trace, late.pid) == [(1, 0, "pupq"), (0, 0, "stranger"), (1, 0, "zzz"), (0, 0, "zzzz")],
       f"--comm, {how}: the trace has the times at which it was selected and left", members(trace, late.pid))
    ok(members(trace, early.pid) == [(0, 1, "python3")] and members(trace, other.pid) == [(1, 1, "pupq")],
       f"--comm, {how}: also by exec", (members(trace, early.pid), members(trace, other.pid)))
    if mode:
        return
    joined = min(e["time"] for e in trace.events("meta_member") if e["pid"] == late.pid)
    tasks = [e for e in trace.events("proc_task") if e["pid"] == late.pid]
    images = [e for e in trace.events("proc_image") if e["pid"] == late.pid]
    ok(tasks and images and all(e["time"] >= joined for e in tasks + images),
       "a process that is selected later is introduced with its threads and program", (tasks, images))
    maps = [e for e in trace.events("proc_map") if e["pid"] == late.pid and "libcudart" in str(e["path_text"])]
    ok(maps, "and with its libraries")
    spans = [e for k in ("sched_run", "sched_off") for e in trace.events(k) if e["pid"] == late.pid]
    ok(spans and all(e["start"] >= joined for e in spans), "family sched follows it from then on", spans[:3])
    comings = [(e["time"], e["member"]) for e in sorted(trace.events("meta_member"), key=lambda e: e["time"]) if e["pid"] == late.pid]
    calls = sorted(e["start"] for e in trace.events("syscall") if e["pid"] == late.pid)
    outside = [at for at in calls if not ([member for time, member in comings if time <= at] or [0])[-1]]
    ok(calls and not outside, "its system calls are recorded if they begin while it is selected", (len(calls), comings, outside[:9]))


def narrowing():
    """-p selects two process trees, --comm one name."""
    a, b, c = Puppet(), Puppet(), Puppet()
    for p in (a, c):
        p.do("name pupp")
    sonde = Sonde(trace_path("narrow"), "-t", "cuda", "-p", f"{a.pid},{b.pid}", "--comm", "pupp")
    a.do("calls 1 3")
    b.do("calls 11 3")
    c.do("calls 21 3")
    b.do("name pupp")
    b.do("calls 31 3")
    child = int(b.do("fork 41 3"))
    for p in (a, b, c):
        p.end()
    status = sonde.end(sig=None)
    want = numbered(a.pid, 1, 3) + numbered(b.pid, 31, 3) + numbered(child, 41, 3)
    got = allocs(Trace(sonde.path))
    ok(status == 0 and got == sorted(want), "-p and --comm: only processes that both select", got)


def mounts(kind):
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.split(" - ")
            if right.split()[0] == kind:
                yield left.split()[4], right.split()[2]


def make(path):
    os.mkdir(path)
    return path


def move(where, pid):
    with open(os.path.join(where, "cgroup.procs"), "w") as f:
        f.write(str(pid))


def in_cgroups(base, shown, how, mode=""):
    """shown: the argument of --cgroup"""
    docker = "docker-" + "0123456789abcdef" * 4 + ".scope"
    made = []
    puppets = []
    try:
        made = [make(base), make(base + "/in"), make(base + "/in/kid"), make(base + "/in/" + docker), make(base + "/out")]
        top, inside, kid, scope, outside = made
        early, late, never = puppets = [Puppet(), Puppet(), Puppet()]
        move(kid, early.pid)
        move(outside, late.pid)
        move(outside, never.pid)
        sonde = Sonde(trace_path("cgroup" + mode), "-t", "cuda" if mode else "cuda,proc", "--cgroup", shown + "/in", mode=mode)
        early.do("calls 1 5")
        want = numbered(early.pid, 1, 5)
        late.do("calls 100 5")
        never.do("calls 150 5")
        want += numbered(int(early.do("fork 200 5")), 200, 5)
        move(scope, late.pid)
        late.do("calls 300 5")
        want += numbered(late.pid, 300, 5)
        move(inside, early.pid)
        early.do("calls 400 5")
        want += numbered(early.pid, 400, 5)
        early.exec("/usr/bin/python3")
        early.do("calls 500 5")
        want += numbered(early.pid, 500, 5)
        move(outside, early.pid)
        early.do("calls 600 5")
        early.do("fork 700 5")
        status = sonde.end()
        trace = Trace(sonde.path)
        got = allocs(trace)
        ok(status == 0, f"--cgroup, {how}: recorded", sonde.messages)
        ok(got == sorted(want), f"--cgroup, {how}: exactly the calls in it and below it, each once",
           f"missing {sorted(set(want) - set(got))}\nsurplus {sorted(set(got) - set(want))}")
        ok([m[0] for m in members(trace, late.pid)] == [1] and [m[0] for m in members(trace, early.pid)] == [0],
           f"--cgroup, {how}: the trace has the processes that came and left", (members(trace, late.pid), members(trace, early.pid)))
        if not mode:
            images = {e["pid"]: e for e in trace.events("proc_image")}
            late_image = images.get(late.pid, {})
            ok(str(late_image.get("container_text")) == "docker-0123456789ab" and
               str(late_image.get("cgroup_text", "")).endswith("/in/" + docker),
               f"--cgroup, {how}: the container is identified by its cgroup", late_image)
            import subprocess
            report = subprocess.run([os.environ["SONDE"], "report", sonde.path], stdout=subprocess.PIPE, text=True).stdout
            ok("docker-0123456789ab" in report, f"--cgroup, {how}: the summary names the container", report)
    finally:
        for p in puppets:
            p.end()
        for path in reversed(made):
            os.rmdir(path)


def cgroups():
    name = f"sonde-test-{os.getpid()}"
    for point, _ in mounts("cgroup2"):
        try:
            os.rmdir(make(os.path.join(point, name)))
        except OSError:
            continue
        for mode, how in MODES.items():
            in_cgroups(os.path.join(point, name), "/" + name, f"v2, {how}", mode)
        in_cgroups(os.path.join(point, name), os.path.join(point, name), "v2 by its directory")
        break
    else:
        skip("--cgroup, v2", "no writable cgroup v2")
    for point, _ in mounts("cgroup"):
        try:
            os.rmdir(make(os.path.join(point, name)))
        except OSError:
            continue
        if "cpuset" in point:  # a cpuset needs CPUs before a process can join it
            continue
        in_cgroups(os.path.join(point, name), os.path.join(point, name), "v1")
        break
    else:
        skip("--cgroup, v1", "no writable cgroup v1")


for mode, how in MODES.items():
    by_name(mode, how)
narrowing()
cgroups()
done()

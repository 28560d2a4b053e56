#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""doctor: what it says against what other programs know, in places where something is missing; the commands that it names
are run and must mend it."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from puppet import LIBRARY, SONDE, Puppet
from tap import done, ok, skip

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# a mount namespace of its own, whose changes reach no other process
UNSHARED = ["unshare", "-m", "--propagation", "private"]


def doctor(prefix=(), switches="", before="", sonde=SONDE):
    """Exit status and tables; `before`: shell commands to be run in the same place first."""
    command = [*prefix, "sh", "-c", f'{before or ":"}\nexec "$0" doctor --format json', sonde]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "SONDE_TEST": switches})
    try:
        return done.returncode, json.loads(done.stdout)["tables"]
    except (ValueError, KeyError):
        return done.returncode, {"checks": [], "families": [], "runtimes": [], "missing": [], "said": done.stdout + done.stderr}


def check(tables, name):
    return next((c["state"] for c in tables["checks"] if c["check"] == name), None)


def mends(tables):
    return [m["mend"] for m in tables["missing"]]


def family(tables, name):
    return next((f for f in tables["families"] if f["name"] == name), {})


def listed_families():
    out = subprocess.run([SONDE, "list", "families", "--format", "json"], capture_output=True, text=True, check=True).stdout
    return {f["name"] for f in json.loads(out)["tables"]["families"] if f["id"]}


def here():
    status, t = doctor()
    listed = listed_families()
    ok(listed == {f["name"] for f in t["families"]}, "every family is judged", t["families"])
    want = 0 if all(f["usable"] == "yes" for f in t["families"]) else 3
    ok(status == want, f"exit status {want} says whether all are usable", (status, t))
    ok(check(t, "kernel") == os.uname().release and check(t, "user") == "root" and check(t, "BPF") == "works",
       "kernel and user", t["checks"])
    # where others' events are most of all there is no figure, and it says so: then again
    for _ in range(8):
        asked = [family(t, name) for name in ("sched", "syscall", "lock")]
        if all(f.get("measured") == "here" for f in asked):
            break
        t = doctor()[1]
    for f in asked:
        good = f.get("measured") == "here" and 10 < f["hit_ns"] < 100000 and 5 < f["foreign_hit_ns"] < 100000
        ok(good, f"{f.get('name')}: a hit of its tracepoints was measured, of followed threads and of others", f)
    rows = [check(t, "confinement of sonde"), check(t, "confinement of sonde-attacher")]
    ok(rows == ["works"] * 2, "the processes of a recording can be confined in full here", t["checks"])
    f = family(t, "cuda")
    ok(f.get("hit_ns") and 50 < f["hit_ns"] < 1000000, "cuda: so was a call with its return", f)
    text = subprocess.run([SONDE, "doctor"], capture_output=True, text=True).stdout
    ok("This machine" in text and "Families of probes" in text and ("missing" in text) == bool(t["missing"]),
       "for people: what is missing is a table, nothing missing is none", text)
    for path, name in (("/proc/sys/kernel/perf_event_paranoid", "kernel.perf_event_paranoid"),
                       ("/proc/sys/net/core/bpf_jit_enable", "net.core.bpf_jit_enable"),
                       ("/proc/sys/kernel/kptr_restrict", "kernel.kptr_restrict"),
                       ("/proc/sys/kernel/unprivileged_bpf_disabled", "kernel.unprivileged_bpf_disabled")):
        if os.path.exists(path):
            with open(path) as f:
                ok(check(t, name) == f.read().strip(), f"{name} is the kernel's", check(t, name))


def switched_off():
    for switch, check_name, words in (("no-session", "uprobe_session", "6.13"), ("no-multi", "uprobe_multi", "6.6"),
                                      ("no-returns", "returns", "seccomp")):
        status, t = doctor(switches=switch)
        usable = family(t, "cuda").get("usable")
        want = (0, "yes") if switch == "no-multi" else (3, "partly")
        good = check(t, check_name) == "no" and (status, usable) == want and words in " ".join(mends(t))
        ok(good, f"SONDE_TEST={switch}: {check_name} is missing, exit {want[0]}, and a newer kernel mends it", (status, usable, t))
    _, t = doctor(switches="no-seccomp")
    lacks = {m["what"]: m["effect"] for m in t["missing"] if m["what"].startswith("confinement")}
    ok(len(lacks) == 2 and all("system calls are not filtered" in e for e in lacks.values()),
       "SONDE_TEST=no-seccomp: what the worker and the attacher lack of their confinement is missing", t["missing"])
    status, t = doctor(switches="no-trial")
    f = family(t, "sched")
    ok(status == 0 and f.get("measured") == "elsewhere" and f["usable"] == "yes" and family(t, "cuda")["measured"] == "here",
       "without the trial of tracepoints the documented figure stands there, and is marked", (status, t["families"]))


def unprivileged():
    # the build may lie where other users can't get to
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        status, t = doctor(NOBODY, sonde=shutil.copy(SONDE, folder))
    ok(status == 1 and {f["usable"] for f in t["families"]} == {"not allowed"}, "a user: exit 1, nothing is allowed", (status, t))
    states = [check(t, c) for c in ("BPF", "uprobe_multi", "uprobe_session")]
    ok(states == ["not allowed"] * 3, "what this user may not try is not said to be missing", states)
    ok(check(t, "capabilities") == "some are missing" and "sudo" in " ".join(mends(t)), "and root is what mends it", t["missing"])
    ok({f["measured"] for f in t["families"]} == {"no", "elsewhere"}, "no cost is said to be measured here", t["families"])


def no_file_systems():
    gone = "for m in $(findmnt -rno TARGET -t cgroup,cgroup2,tracefs); do umount -l $m; done"
    status, t = doctor(UNSHARED, before=gone)
    ok(status == 0 and check(t, "tracefs") == "not mounted", "without tracefs all is usable, and it is reported", (status, t["checks"]))
    mend = [m for m in mends(t) if "cgroup" in m]
    ok(check(t, "cgroup") == "not mounted" and len(mend) == 1, "without a cgroup file system: reported, and the command", t["missing"])
    if mend:
        status, t = doctor(UNSHARED, before=f"{gone}\n{mend[0]}")
        ok(check(t, "cgroup") == "v2" and not [m for m in mends(t) if "cgroup" in m], "the command mends it", t["checks"])
    status, t = doctor(UNSHARED, before="umount -l /sys")
    mend = [m for m in mends(t) if m.startswith("mount -t sysfs")]
    ok(status == 1 and check(t, "BTF") == "missing" and mend, "without /sys: exit 1, reported, and the command", (status, t))
    if mend:
        status, t = doctor(UNSHARED, before=f"umount -l /sys\n{mend[0]}")
        ok(check(t, "BTF") == "there" and status in (0, 3), "the command mends it", (status, t["checks"]))
    status, t = doctor([*UNSHARED], before="mount -t proc -o hidepid=2 proc /proc")
    ok(str(check(t, "/proc")).startswith("hidepid="), "a /proc that hides processes is reported", t["checks"])


def pid_namespace():
    status, t = doctor(["unshare", "-fp", "--mount-proc"])
    ok(status == 1 and check(t, "pid namespace") == "one of its own" and "--pid=host" in " ".join(mends(t)),
       "in a pid namespace of its own: exit 1, as record does, and what mends it", (status, t))


def setting():
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path) as f:
        was = f.read().strip()
    try:
        with open(path, "w") as f:
            f.write("1")
        _, t = doctor()
        mend = [m for m in mends(t) if "bpf_stats_enabled" in m]
        ok(len(mend) == 1, "a setting that makes each hit more expensive is reported", t["missing"])
        for m in mend:
            subprocess.run(m.split(), check=True, capture_output=True)
            with open(path) as f:
                ok(f.read().strip() == "0", "its command mends it")
    finally:
        with open(path, "w") as f:
            f.write(was)


def cgroup_for_tests():
    """A cgroup named as docker names them; NULL: no cgroup v2 that lets one be made."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(os.path.join(root, "cgroup.controllers")):
            path = os.path.join(root, f"docker-{'5a' * 32}.scope")
            try:
                os.mkdir(path)
            except OSError:
                return None
            return path
    return None


def runtimes():
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True).stdout.split()[1]
    puppet = Puppet("/usr/bin/python3", LIBRARY)
    cgroup = cgroup_for_tests()
    try:
        if cgroup:
            with open(os.path.join(cgroup, "cgroup.procs"), "w") as f:
                f.write(str(puppet.pid))
        _, t = doctor()
        mine = {r["family"]: r for r in t["runtimes"] if r["pid"] == puppet.pid}
        ok(mine.get("gil", {}).get("runtime") == f"CPython {version}", f"a Python that runs, its version {version}", mine)
        ok("in the runtime" in mine.get("gil", {}).get("how", ""), "and how its GIL is traced", mine)
        ok(mine.get("cuda", {}).get("object") == os.path.realpath(LIBRARY), "its CUDA library", mine)
        if cgroup:
            ok(mine.get("gil", {}).get("container") == "docker-" + "5a" * 6, "its container", mine)
        else:
            skip("its container", "no cgroup v2 in which one can be made")
        _, t = doctor(switches="gil-pattern")
        mine = {r["family"]: r for r in t["runtimes"] if r["pid"] == puppet.pid}
        ok("through libc: the pattern is hidden" in mine.get("gil", {}).get("how", ""), "a GIL that is traced through libc, and why",
           mine)
    finally:
        puppet.process.kill()
        puppet.process.wait()
        if cgroup:
            os.rmdir(cgroup)


def free_threaded():
    found = [p for p in glob.glob("/usr/local/bin/python3*t") if re.search(r"3\.\d+t$", p)]
    if not found:
        skip("a free-threaded CPython is said to have no GIL", "none is installed")
        return
    puppet = Puppet(found[0], "")
    _, t = doctor()
    hows = [r["how"] for r in t["runtimes"] if r["pid"] == puppet.pid and r["family"] == "gil"]
    puppet.process.kill()
    puppet.process.wait()
    ok(hows and hows[0].startswith("not: free-threaded"), "a free-threaded CPython is said to have no GIL", hows)


here()
switched_off()
unprivileged()
no_file_systems()
pid_namespace()
setting()
runtimes()
free_threaded()
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""doctor: its results are compared with those of other programs, also where something is missing. The commands that it prints are run
and must solve the problem."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

from puppet import LIBRARY, SONDE, Puppet
from tap import done, ok, skip

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# a private mount namespace, whose changes no other process sees
UNSHARED = ["unshare", "-m", "--propagation", "private"]


def doctor(prefix=(), switches="", before="", sonde=SONDE):
    """(exit status, tables) of doctor; `before` are shell commands that are run first, in the same namespaces."""
    command = [*prefix, "sh", "-c", f'{before or ":"}\nexec "$0" doctor --format json', sonde]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "SONDE_TEST": switches})
    try:
        return done.returncode, json.loads(done.stdout)["tables"]
    except (ValueError, KeyError):
        return done.returncode, {"checks": [], "families": [], "runtimes": [], "missing": [], "said": done.stdout + done.stderr}


def check(tables, name):
    return next((c["state"] for c in tables["checks"] if c["check"] == name), None)


def remedies(tables):
    return [m["remedy"] for m in tables["missing"]]


def family(tables, name):
    return next((f for f in tables["families"] if f["name"] == name), {})


def listed_families():
    out = subprocess.run([SONDE, "list", "families", "--format", "json"], capture_output=True, text=True, check=True).stdout
    return {f["name"] for f in json.loads(out)["tables"]["families"] if f["id"]}


def here():
    status, t = doctor()
    listed = listed_families()
    ok(listed == {f["name"] for f in t["families"]}, "every family has a row", t["families"])
    want = 0 if all(f["usable"] == "yes" for f in t["families"]) else 3
    ok(status == want, f"exit status {want} reports whether all families are usable", (status, t))
    ok(check(t, "kernel") == os.uname().release and check(t, "user") == "root" and check(t, "BPF") == "works",
       "the kernel's version, the user and BPF", t["checks"])
    f = family(t, "cuda")
    ok(f.get("hit_ns", 0) > 0, "cuda: the cost of a call with its return was measured", f)
    ok(family(t, "sched").get("hit_ns", 0) is None, "sched, which has only tracepoints, has no cost of a trap", t["families"])
    text = subprocess.run([SONDE, "doctor"], capture_output=True, text=True).stdout
    ok("This machine" in text and "Families of probes" in text and ("missing" in text) == bool(t["missing"]),
       "text: there is a table of missing features only if one is missing", text)
    for path, name in (("/proc/sys/kernel/bpf_stats_enabled", "kernel.bpf_stats_enabled"),
                       ("/proc/sys/net/core/bpf_jit_enable", "net.core.bpf_jit_enable")):
        if os.path.exists(path):
            with open(path) as f:
                ok(check(t, name) == f.read().strip(), f"{name} is the kernel's", check(t, name))


def switched_off():
    for switch, check_name, words in (("no-session", "uprobe_session", "6.13"), ("no-multi", "uprobe_multi", "6.6"),
                                      ("no-returns", "returns", "seccomp")):
        status, t = doctor(switches=switch)
        usable = family(t, "cuda").get("usable")
        want = (0, "yes") if switch == "no-multi" else (3, "partly")
        good = check(t, check_name) == "no" and (status, usable) == want and words in " ".join(remedies(t))
        ok(good, f"SONDE_TEST={switch}: {check_name} is missing, exit {want[0]}, and a newer kernel remedies it", (status, usable, t))


def unprivileged():
    # other users may have no access to the build directory
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        status, t = doctor(NOBODY, sonde=shutil.copy(SONDE, folder))
    ok(status == 1 and {f["usable"] for f in t["families"]} == {"not allowed"}, "an unprivileged user: exit 1, no family is allowed", (status, t))
    states = [check(t, c) for c in ("BPF", "uprobe_multi", "uprobe_session")]
    ok(states == ["not allowed"] * 3, "features that this user may not try are not reported as missing", states)
    ok(check(t, "capabilities") == "some are missing" and "sudo" in " ".join(remedies(t)), "the advice is to run as root", t["missing"])
    ok({f["hit_ns"] for f in t["families"]} == {None}, "there is no cost", t["families"])


def no_file_systems():
    gone = "for m in $(findmnt -rno TARGET -t cgroup,cgroup2,tracefs); do umount -l $m; done"
    status, t = doctor(UNSHARED, before=gone)
    ok(status == 0, "without tracefs all families are usable", (status, t["checks"]))
    remedy = [m for m in remedies(t) if "cgroup" in m]
    ok(check(t, "cgroup") == "not mounted" and len(remedy) == 1, "a missing cgroup file system is reported with the command that mounts it", t["missing"])
    if remedy:
        status, t = doctor(UNSHARED, before=f"{gone}\n{remedy[0]}")
        ok(check(t, "cgroup") == "v2" and not [m for m in remedies(t) if "cgroup" in m], "the command that doctor prints mounts it", t["checks"])
    status, t = doctor(UNSHARED, before="umount -l /sys")
    remedy = [m for m in remedies(t) if m.startswith("mount -t sysfs")]
    ok(status == 1 and check(t, "BTF") == "missing" and remedy, "without /sys: exit 1, and it is reported with the command that mounts it", (status, t))
    if remedy:
        status, t = doctor(UNSHARED, before=f"umount -l /sys\n{remedy[0]}")
        ok(check(t, "BTF") == "there" and status in (0, 3), "the command that doctor prints mounts it", (status, t["checks"]))


def pid_namespace():
    status, t = doctor(["unshare", "-fp", "--mount-proc"])
    ok(status == 1 and check(t, "pid namespace") == "not the host's" and "--pid=host" in " ".join(remedies(t)),
       "in another pid namespace: exit 1, as from record, with advice", (status, t))


def setting():
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path) as f:
        was = f.read().strip()
    try:
        with open(path, "w") as f:
            f.write("1")
        _, t = doctor()
        remedy = [m for m in remedies(t) if "bpf_stats_enabled" in m]
        ok(len(remedy) == 1, "a setting that makes each hit more expensive is reported", t["missing"])
        for m in remedy:
            subprocess.run(m.split(), check=True, capture_output=True)
            with open(path) as f:
                ok(f.read().strip() == "0", "the command that doctor prints corrects the setting")
    finally:
        with open(path, "w") as f:
            f.write(was)


def cgroup_for_tests():
    """Creates a cgroup named like docker's. Returns None if no cgroup v2 allows it."""
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
        ok(mine.get("gil", {}).get("runtime") == f"CPython {version}", f"a running Python is listed with its version {version}", mine)
        ok("in the runtime" in mine.get("gil", {}).get("how", ""), "with the way in which its GIL is traced", mine)
        ok(mine.get("cuda", {}).get("object") == os.path.realpath(LIBRARY), "with its CUDA library", mine)
        if cgroup:
            ok(mine.get("gil", {}).get("container") == "docker-" + "5a" * 6, "with its container", mine)
        else:
            skip("with its container", "no cgroup v2 in which a cgroup can be created")
        _, t = doctor(switches="no-gil-pattern")
        mine = {r["family"]: r for r in t["runtimes"] if r["pid"] == puppet.pid}
        ok("through libc: the pattern is hidden" in mine.get("gil", {}).get("how", ""), "a GIL that is traced through libc is listed with the reason",
           mine)
        r = subprocess.run([SONDE, "doctor"], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "SONDE_TEST": "doctor-crash"}, check=False)
        ok(r.returncode in (0, 3) and "could not be examined: what parses it crashed" in r.stdout and "its GIL in" not in r.stdout,
           "a file that crashes its parser is reported, and everything else is complete", r)
    finally:
        puppet.process.kill()
        puppet.process.wait()
        if cgroup:
            os.rmdir(cgroup)


def free_threaded():
    found = [p for p in glob.glob("/usr/local/bin/python3*t") if re.search(r"3\.\d+t$", p)]
    if not found:
        skip("a free-threaded CPython is reported to have no GIL", "no free-threaded CPython is installed")
        return
    puppet = Puppet(found[0], "")
    _, t = doctor()
    hows = [r["how"] for r in t["runtimes"] if r["pid"] == puppet.pid and r["family"] == "gil"]
    puppet.process.kill()
    puppet.process.wait()
    ok(hows and hows[0].startswith("not: free-threaded"), "a free-threaded CPython is reported to have no GIL", hows)


here()
switched_off()
unprivileged()
no_file_systems()
pid_namespace()
setting()
runtimes()
free_threaded()
done()

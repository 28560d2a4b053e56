#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--scope and --trusted-files, with a second account: whose processes are in a trace, and in whose files probes go."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from account import Account, let_pass
from sonde_trace import Trace
from tap import done, ok, skip_all

FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
# Calls a library all the time; first it may become another user, without an exec
CALLER = """
import ctypes, os, sys, time
library, uid = sys.argv[1:]
cuda = ctypes.CDLL(library)
print("ready", flush=True)
if uid != "0":
    sys.stdin.readline()
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
at = ctypes.c_void_p()
while True:
    cuda.cudaMalloc(ctypes.byref(at), 64)
    time.sleep(0.005)
"""


class Caller:
    def __init__(self, library, prefix=(), uid=0):
        self.child = subprocess.Popen([*prefix, "/usr/bin/python3", "-c", CALLER, library, str(uid)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.child.pid
        assert self.child.stdout.readline() == "ready\n"

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self):
        self.child.kill()
        self.child.communicate()


def record(tmp, *options, seconds=1.0, begun=None, **env):
    """(exit status, what was said, the trace or None)"""
    path = os.path.join(tmp, "policy.sonde")
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.Popen([SONDE, "record", "-t", "cuda", "-o", path, "-d", str(seconds), *options], stderr=subprocess.PIPE,
                         text=True, env=dict(os.environ, **env))
    said = ""
    for line in p.stderr:
        said += line
        if begun and "tracing into" in line:
            begun()
    p.wait()
    return p.returncode, said, Trace(path) if os.path.exists(path) else None


def callers(trace):
    return {e["pid"] for e in trace.events("cuda_alloc")}


def scopes(a, tmp, library):
    sudo = {"SUDO_UID": str(a.uid), "SUDO_GID": str(a.gid)}
    of_root, of_user = Caller(library), Caller(library, a.command())
    changing = Caller(library, uid=a.uid)
    try:
        _, said, t = record(tmp, **sudo)
        ok({of_root.pid, of_user.pid} <= callers(t) and "--scope user leaves out" in said,
           "by sudo: processes of all users, and a line says so", f"{callers(t)}\n{said}")
        status, said, t = record(tmp, "--scope", "user", **sudo)
        ok(status == 0 and callers(t) == {of_user.pid} and "only processes of the user" in said,
           "--scope user: the processes of the user behind sudo alone", f"{callers(t)} {of_user.pid}\n{said}")
        _, said, t = record(tmp, "--scope", "user", "-p", f"{of_root.pid},{of_user.pid}", **sudo)
        ok(callers(t) == {of_user.pid} and "belongs to root and is left out" in said,
           "-p of another user's process is left out, and a line says so", said)
        status, said, t = record(tmp, "--scope", "user", "-p", str(of_root.pid), **sudo)
        ok(status == 2 and t is None, "-p of nothing else: an error", said)
        # without an exec: within a second and the next look at the mappings
        _, said, t = record(tmp, "--scope", "user", seconds=4, begun=changing.go, **sudo)
        ok(callers(t) == {of_user.pid, changing.pid}, "a process that becomes the user's meanwhile is traced from then on",
           f"{callers(t)} {changing.pid}\n{said}")
        _, said, t = record(tmp, "--scope", "all")
        ok({of_root.pid, of_user.pid} <= callers(t) and "--scope" not in said, "--scope all: everything, without a word", said)
    finally:
        for c in (of_root, of_user, changing):
            c.end()


def configuration(a, tmp, library):
    path = os.path.join(tmp, "sonde.conf")
    with open(path, "w") as f:
        f.write("# who is traced\nscope = user\n\ntrusted-files = yes # and where\n")
    os.chmod(path, 0o644)
    sudo = {"SUDO_UID": str(a.uid), "SUDO_GID": str(a.gid), "SONDE_CONF": path}
    of_root, of_user = Caller(library), Caller(library, a.command())
    try:
        _, said, t = record(tmp, **sudo)
        ok(callers(t) == {of_user.pid}, "the configuration's scope holds where the command line names none", said)
        _, said, t = record(tmp, "--scope", "all", **sudo)
        ok({of_root.pid, of_user.pid} <= callers(t), "the command line's goes first", said)
        os.chmod(path, 0o666)
        status, said, t = record(tmp, **sudo)
        ok(status == 2 and t is None and "not root's alone" in said, "a configuration that others may write is an error", said)
        os.chmod(path, 0o644)
        with open(path, "w") as f:
            f.write("skope = all\n")
        status, said, t = record(tmp, **sudo)
        ok(status == 2 and "no such key" in said, "so is a key that there is not", said)
    finally:
        of_root.end()
        of_user.end()


def sonde(*words, prefix=(), **env):
    return subprocess.run([*prefix, SONDE, *words], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, **env))


def other_commands(a, tmp, library):
    """One policy for all that look at or touch processes: whose they are is asked before anything is opened."""
    path = os.path.join(tmp, "others.conf")
    with open(path, "w") as f:
        f.write("scope = user\ntrusted-files = yes\nremote-files = yes\n")
    os.chmod(path, 0o644)
    sudo = {"SUDO_UID": str(a.uid), "SUDO_GID": str(a.gid)}
    of_root, of_user = Caller(library), Caller(library, a.command())
    try:
        for words in (["dump"], ["inject"], ["list", "probes", "--resolve"]):
            name = " ".join(words)
            r = sonde(*words, str(of_root.pid), SONDE_CONF=path, **sudo)
            ok(r.returncode == 1 and f"process {of_root.pid} belongs to root and is left out by --scope user ({path}); "
               "--scope all allows it" in r.stderr and not r.stdout, f"{name}: a process outside the scope is refused, with what allows it",
               r.stderr)
            r = sonde(*words, str(of_user.pid), SONDE_CONF=path, **sudo)
            ok("left out by" not in r.stderr, f"{name}: one of the user's own is not", r.stderr)
            r = sonde(*words, str(of_root.pid), "--scope", "all", SONDE_CONF=path, **sudo)
            ok("left out by" not in r.stderr, f"{name}: nor another's with --scope all", r.stderr)
            r = sonde(*words, str(of_root.pid), "--scope", "self")
            ok(r.returncode == 2 and "sonde record -- CMD" in r.stderr, f"{name}: --scope self is record's", r.stderr)
        with open(f"/proc/{of_root.pid}/maps") as f:
            maps = f.read()
        # of the three loads into root's process one was allowed: it shows that the refused one was first
        ok("libsonde-cupti" in maps, "inject --scope all has loaded the library", maps[-300:])
        doctor(a, path, sudo, of_root, of_user)
    finally:
        of_root.end()
        of_user.end()


def doctor(a, path, sudo, of_root, of_user):
    def asked(*words, **env):
        r = sonde("doctor", "--format", "json", *words, **env)
        t = json.loads(r.stdout)["tables"]
        policy = {c["check"]: (c["state"], c["what"]) for c in t["checks"] if c["group"] == "policy"}
        return r, policy, {row["pid"] for row in t["runtimes"]}

    r, policy, pids = asked()
    ok([policy[k][0] for k in ("scope", "trusted-files", "remote-files")] == ["all", "no", "no"] and
       "(the default for root)" in policy["scope"][1] and {of_root.pid, of_user.pid} <= pids,
       "doctor: the policy of root without a configuration, and where it is from", policy)
    r, policy, pids = asked(SONDE_CONF=path, **sudo)
    ok([policy[k][0] for k in ("scope", "trusted-files", "remote-files")] == ["user", "yes", "yes"] and
       all(path in what for _, what in policy.values()) and a.name in policy["scope"][1],
       "doctor: that of the configuration, whose path it names", policy)
    ok(of_user.pid in pids and of_root.pid not in pids, "doctor: processes outside the scope are not examined", pids)
    text = sonde("doctor", SONDE_CONF=path, **sudo).stdout
    ok("processes of other users are left out" in text, "doctor: and a line says how many they are", text[-600:])
    r, policy, pids = asked("--scope", "all", "--trusted-files=no", SONDE_CONF=path, **sudo)
    ok([policy[k][0] for k in ("scope", "trusted-files")] == ["all", "no"] and "the command line" in policy["scope"][1] and
       of_root.pid in pids, "doctor: the command line's goes first", policy)


def files(a, tmp):
    """Each library in a folder that is named after whose it is; the account's process maps it."""
    owners = {"roots": 0, "own": a.uid, "foreign": 65534, "setuid": a.uid}
    running = []
    for name, owner in owners.items():
        folder = os.path.join(tmp, name)
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        path = shutil.copy(FAKE, os.path.join(folder, "libcudart.so.12"))
        os.chown(path, owner, owner)
        os.chmod(path, 0o4755 if name == "setuid" else 0o755)
        running.append(Caller(path, a.command()))
    pids = dict(zip(owners, (c.pid for c in running)))
    try:
        status, said, t = record(tmp, "--trusted-files")
        ours = set(pids.values())
        ok(callers(t) & ours == {pids["roots"], pids["own"]}, "--trusted-files: root's files and those of who maps them",
           f"{callers(t)} {pids}\n{said}")
        ok("foreign/libcudart.so.12" in said and "--trusted-files" in said and "without the option it is" in said and status == 3,
           "a line names the other one, and how to allow it", said)
        status, said, t = record(tmp)
        ok(callers(t) & ours == {pids["roots"], pids["own"], pids["foreign"]}, "without it: that too", f"{callers(t)} {pids}")
        ok("setuid/libcudart.so.12" in said and "setuid or setgid program" in said,
           "the file of a setuid program gets no probe, and a line says so", said)
    finally:
        for c in running:
            c.end()


def without_privileges(a, tmp):
    r = subprocess.run(a.command(SONDE, "record", "--scope", "all", "-o", "/dev/null", "-d", "1"), capture_output=True, text=True)
    ok(r.returncode == 2 and "--scope all is root's" in r.stderr and "sudo sonde record" in r.stderr,
       "--scope all without root's rights: refused, with what to do", r.stderr)
    r = subprocess.run(a.command(SONDE, "record", "-o", "/dev/null", "-d", "1"), capture_output=True, text=True)
    ok(r.returncode == 1 and "run sonde as root" in r.stderr, "without privileges: an error that says what is needed", r.stderr)


def main():
    with Account() as a, tempfile.TemporaryDirectory(prefix="sonde-policy-") as tmp:
        if a.why:
            skip_all(a.why)
        let_pass(tmp)
        os.chmod(tmp, 0o755)
        library = shutil.copy(FAKE, os.path.join(tmp, "libcudart.so.12"))
        os.chmod(library, 0o755)
        scopes(a, tmp, library)
        configuration(a, tmp, library)
        other_commands(a, tmp, library)
        files(a, tmp)
        without_privileges(a, tmp)
        status, said, t = record(tmp, "--scope", "self", "--", "true")
        ok(status == 0, "--scope self: with a command", said)
    done()


main()

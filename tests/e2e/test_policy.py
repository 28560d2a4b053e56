#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""--scope and --trusted-files, with a second account: which users' processes are recorded, and which users' files are probed."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
from account import Account, let_pass
from sonde_trace import Trace
from tap import done, ok, skip_all
from waiting import wait_for

FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
# Calls a library without pause; before that it may change its user without an exec
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


def record(tmp, *options, until=(), begun=None, **env):
    """(exit status, messages, the trace or None). Records until these processes have made calls; without any, for a moment."""
    path = os.path.join(tmp, "policy.sonde")
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.Popen([SONDE, "record", "-t", "cuda", "-o", path, *(() if until else ("-d", "0.1")), *options], stderr=subprocess.PIPE,
                         text=True, env=dict(os.environ, **env))
    said = ""
    for line in p.stderr:
        said += line
        if until and "tracing into" in line:
            if begun:
                begun()
            wait_for(lambda: set(until) <= callers(Trace(path)), pause=0.3)
            p.send_signal(signal.SIGINT)
    p.wait()
    return p.returncode, said, Trace(path) if os.path.exists(path) else None


def callers(trace):
    return {e["pid"] for e in trace.events("cuda_alloc")}


def scopes(a, tmp, library):
    sudo = {"SUDO_UID": str(a.uid), "SUDO_GID": str(a.gid)}
    of_root, of_user = Caller(library), Caller(library, a.command())
    changing = Caller(library, uid=a.uid)
    try:
        both = of_root.pid, of_user.pid
        _, said, t = record(tmp, until=both, **sudo)
        ok({of_root.pid, of_user.pid} <= callers(t) and "--scope user leaves out" in said,
           "by sudo: processes of all users are recorded, and a message says so", f"{callers(t)}\n{said}")
        status, said, t = record(tmp, "--scope", "user", until=[of_user.pid], **sudo)
        ok(status == 0 and callers(t) == {of_user.pid} and "only processes of the user" in said,
           "--scope user: only the processes of the user behind sudo", f"{callers(t)} {of_user.pid}\n{said}")
        _, said, t = record(tmp, "--scope", "user", "-p", f"{of_root.pid},{of_user.pid}", until=[of_user.pid], **sudo)
        ok(callers(t) == {of_user.pid} and "belongs to root and is left out" in said,
           "-p of another user's process is left out, and a message says so", said)
        status, said, t = record(tmp, "--scope", "user", "-p", str(of_root.pid), **sudo)
        ok(status == 2 and t is None, "-p of only such processes: an error", said)
        # without an exec this takes up to a second and the next scan of the mappings
        _, said, t = record(tmp, "--scope", "user", until=(of_user.pid, changing.pid), begun=changing.go, **sudo)
        ok(callers(t) == {of_user.pid, changing.pid}, "a process that changes to the user is traced from then on",
           f"{callers(t)} {changing.pid}\n{said}")
        _, said, t = record(tmp, "--scope", "all", until=both)
        ok({of_root.pid, of_user.pid} <= callers(t) and "--scope" not in said, "--scope all: processes of all users, without a message", said)
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
        _, said, t = record(tmp, until=[of_user.pid], **sudo)
        ok(callers(t) == {of_user.pid}, "the configuration's scope applies if the command line has none", said)
        _, said, t = record(tmp, "--scope", "all", until=(of_root.pid, of_user.pid), **sudo)
        ok({of_root.pid, of_user.pid} <= callers(t), "the command line's scope overrides the configuration's", said)
        os.chmod(path, 0o666)
        status, said, t = record(tmp, **sudo)
        ok(status == 2 and t is None and "can be written by other users" in said, "a configuration that other users may write is an error", said)
        os.chmod(path, 0o644)
        with open(path, "w") as f:
            f.write("skope = all\n")
        status, said, t = record(tmp, **sudo)
        ok(status == 2 and "no such key" in said, "an unknown key is an error", said)
    finally:
        of_root.end()
        of_user.end()


def sonde(*words, prefix=(), **env):
    return subprocess.run([*prefix, SONDE, *words], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, **env))


def other_commands(a, tmp, library):
    """All commands that inspect or change processes apply one policy, and check a process's owner before they open anything."""
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
               "--scope all allows it" in r.stderr and not r.stdout, f"{name}: a process outside the scope is refused, with the option that allows it",
               r.stderr)
            r = sonde(*words, str(of_user.pid), SONDE_CONF=path, **sudo)
            ok("left out by" not in r.stderr, f"{name}: one of the user's own processes is allowed", r.stderr)
            r = sonde(*words, str(of_root.pid), "--scope", "all", SONDE_CONF=path, **sudo)
            ok("left out by" not in r.stderr, f"{name}: another user's process is allowed with --scope all", r.stderr)
            r = sonde(*words, str(of_root.pid), "--scope", "self")
            ok(r.returncode == 2 and "sonde record -- CMD" in r.stderr, f"{name}: --scope self is record's", r.stderr)
        with open(f"/proc/{of_root.pid}/maps") as f:
            maps = f.read()
        # only the last of the three attempts on root's process was allowed
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
       "doctor: root's default policy and its origin", policy)
    r, policy, pids = asked(SONDE_CONF=path, **sudo)
    ok([policy[k][0] for k in ("scope", "trusted-files", "remote-files")] == ["user", "yes", "yes"] and
       all(path in what for _, what in policy.values()) and a.name in policy["scope"][1],
       "doctor: the configuration's policy and its path", policy)
    ok(of_user.pid in pids and of_root.pid not in pids, "doctor: processes outside the scope are not examined", pids)
    text = sonde("doctor", SONDE_CONF=path, **sudo).stdout
    ok("processes of other users are left out" in text, "doctor: a message has the number of these processes", text[-600:])
    r, policy, pids = asked("--scope", "all", "--trusted-files=no", SONDE_CONF=path, **sudo)
    ok([policy[k][0] for k in ("scope", "trusted-files")] == ["all", "no"] and "the command line" in policy["scope"][1] and
       of_root.pid in pids, "doctor: the command line overrides the configuration", policy)


def files(a, tmp):
    """The account's process maps libraries of several owners, each in a folder named after its owner."""
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
        status, said, t = record(tmp, "--trusted-files", until=(pids["roots"], pids["own"]))
        ours = set(pids.values())
        ok(callers(t) & ours == {pids["roots"], pids["own"]}, "--trusted-files: root's files and those of the mapping process's user are probed",
           f"{callers(t)} {pids}\n{said}")
        ok("foreign/libcudart.so.12" in said and "--trusted-files" in said and "without the option it is" in said and status == 3,
           "a message names the other library and how to allow it", said)
        status, said, t = record(tmp, until=(pids["roots"], pids["own"], pids["foreign"]))
        ok(callers(t) & ours == {pids["roots"], pids["own"], pids["foreign"]}, "without --trusted-files the other library is probed too",
           f"{callers(t)} {pids}")
        ok("setuid/libcudart.so.12" in said and "setuid or setgid program" in said,
           "the file of a setuid program is not probed, and a message says so", said)
    finally:
        for c in running:
            c.end()


def without_privileges(a, tmp):
    r = subprocess.run(a.command(SONDE, "record", "--scope", "all", "-o", "/dev/null", "-d", "1"), capture_output=True, text=True)
    ok(r.returncode == 2 and "--scope all needs root" in r.stderr and "sudo sonde record" in r.stderr,
       "--scope all without root: refused with advice", r.stderr)
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

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 gate
"""Commands that inspect processes end, with complete results about the others, while an account has mounted file systems in its own
namespaces whose server does not answer: FUSE, overlayfs above FUSE, and a process that holds its mmap lock for such a file."""
import json
import os
import shutil
import stat
import subprocess
import sys
import time

ROOT, B, SONDE = (os.environ[n] for n in ("ROOT", "B", "SONDE"))
import proc_files
from account import run_with_account
from tap import ok, skip
from waiting import state, wait_for

SERVER = os.path.join(B, "tests", "workloads", "hung_files")
LIBRARY = os.path.join(B, "tests", "fakes", "libcudart.so")
KINDS = {"fuse": 12, "overlay": 12, "locks": 6}
PATIENCE = 90  # a hang never ends
SECONDS = 20 * int(os.environ.get("SLOW", 1))  # some seconds on an idle machine
VICTIM = """import ctypes, sys
ctypes.CDLL(sys.argv[1])
def waits_for_a_line():
    print(flush=True)
    sys.stdin.readline()
waits_for_a_line()"""


class Server:
    """A server in namespaces of the account, and the process that maps its file"""

    def __init__(self, account, tmp, kind, number):
        folder = os.path.join(tmp, f"{kind}-{number}")
        os.mkdir(folder)
        source, name = (os.path.realpath(sys.executable), "plugin.so") if kind == "locks" else (f"{tmp}/libcudart.so.13", "libcudart.so.13")
        self.kind = kind
        self.p = subprocess.Popen(account.command("unshare", "-Ur", "-m", f"{tmp}/hung_files", folder, source, name, kind), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "FUSE_DEVICE": f"{tmp}/fuse"})
        line = self.p.stdout.readline().split()
        self.pid = int(line[1]) if line else 0

    def hang(self):
        self.p.stdin.write("hang\n")
        self.p.stdin.flush()
        self.p.stdout.readline()
        if self.kind == "locks":
            wait_for(lambda: any(state(self.pid, tid) == "D" for tid in proc_files.threads(self.pid)))

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def run(*words):
    """The exit status (None if it did not end), what the command printed, and the seconds it took"""
    begun = time.monotonic()
    p = subprocess.Popen([SONDE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = p.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        p.kill()
        return None, "", "it did not end", PATIENCE
    return p.returncode, out, err, time.monotonic() - begun


def ends(name, took, *details):
    ok(took < SECONDS, f"{name} ends within some seconds", f"{took:.1f} s", *details)


def doctor(victim, servers):
    status, out, err, took = run("doctor", "--format", "json")
    ends("doctor", took, err)
    rows = json.loads(out)["tables"]["runtimes"] if out else []
    mine = {r["family"]: r for r in rows if r["pid"] == victim}
    ok("cuda" in mine and "not:" not in mine["cuda"]["how"] and "gil" in mine,
       "doctor lists the runtimes of a process beside them", status, mine)
    hostile = [r for r in rows if r["pid"] in servers]
    ok(all("--remote-files" in r["how"] for r in hostile), "doctor opens none of their files", hostile[:3])


def dump(victim, servers):
    status, out, err, took = run("dump", *map(str, servers), str(victim), "--format", "json")
    ends("dump", took, err)
    frames = json.loads(out)["tables"]["frames"] if out else []
    ok("waits_for_a_line" in [f["function"] for f in frames if f["pid"] == victim] and status == 3,
       "dump prints the stack of a process beside them", status, err)
    ok(all(f"process {pid}" in err for pid in servers), "dump names each process that it can't read", err)


def resolve(victim, servers):
    status, out, err, took = run("list", "probes", "--resolve", str(victim), "--format", "json")
    ends("list --resolve of another process", took, err)
    ok(status == 0 and "cudaMalloc" in out, "list --resolve has the probes of a process beside them", status, err)
    for kind in KINDS:
        pid = next(pid for pid, s in servers.items() if s.kind == kind)
        status, out, err, took = run("list", "probes", "--resolve", str(pid))
        ends(f"list --resolve of such a process ({kind})", took, err)
        ok(status and f"process {pid}" in err, f"and names it ({kind})", status, err)


def inject(victim, servers):
    # the library is loaded into those whose mappings can be read, which takes half a second for each
    pids = [pid for kind in KINDS for pid in [pid for pid, s in servers.items() if s.kind == kind][:None if kind == "locks" else 2]]
    status, out, err, took = run("inject", *map(str, pids), str(victim))
    ends("inject", took, err)
    ok(f"process {victim}: loaded" in out, "inject loads the library into a process beside them", status, out, err)


def test(account, tmp):
    if not os.path.exists("/dev/fuse"):
        skip("hung mounts", "needs /dev/fuse")
        return
    # /dev/fuse is open to all users on most systems
    os.mknod(os.path.join(tmp, "fuse"), 0o666 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    os.chmod(os.path.join(tmp, "fuse"), 0o666)
    os.chmod(tmp, 0o777)
    # the account may be unable to enter the folder of the source tree
    shutil.copy(LIBRARY, os.path.join(tmp, "libcudart.so.13"))
    shutil.copy(SERVER, tmp)
    servers, victim = [], None
    try:
        for kind, n in KINDS.items():
            servers += [Server(account, tmp, kind, i) for i in range(n)]
        if not all(s.pid for s in servers):
            skip("hung mounts", "FUSE and overlayfs can't be mounted in a user namespace here")
            return
        victim = subprocess.Popen([sys.executable, "-c", VICTIM, os.path.join(tmp, "libcudart.so.13")], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        victim.stdout.readline()
        for s in servers:
            s.hang()
        by_pid = {s.pid: s for s in servers}
        for check in (doctor, dump, resolve, inject):
            check(victim.pid, by_pid)
    finally:
        for s in servers:
            s.close()
        if victim:
            victim.communicate(b"\n")


run_with_account(test)

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
# It runs alone: closing its perf events takes a global lock in the kernel.
"""The two processes of a recording: the rights of each, and what remains if one of them is killed."""
import glob
import os
import re
import signal
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from account import sondes_account
import proc_files
from process_text import text_differs
from puppet import fake_runtime
from sonde_cli import Sonde
from proc_files import status
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import wait_for

CAPS = {"BPF": 39, "PERFMON": 38, "SYS_PTRACE": 19, "DAC_READ_SEARCH": 2, "CHECKPOINT_RESTORE": 40}  # linux/capability.h


def attacher_of(pid):
    return proc_files.child_named(pid, "sonde-attacher")


def start(path, target, env=None):
    """Starts a recording of the target. Returns it and its attacher once it is live."""
    sonde = Sonde(path, "-t", "cuda,proc", "-p", str(target.pid), env=env or {}).process
    return sonde, attacher_of(sonde.pid)


def wait_gone(pid):
    return wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def wait_clean(target):
    wait_for(lambda: not text_differs(target.pid, "libcudart"), pause=0.1)
    return text_differs(target.pid, "libcudart")


def files_of(attacher):
    """Its open files without its socket, programs and links"""
    files = proc_files.open_files(attacher).values()
    return [f for f in files if not re.match(r"/dev/null$|socket:|anon_inode:\[?bpf[-_](prog|link)|anon_inode:bpf", f)]


def check_rights(target):
    path = os.path.join(TMP, "rights.sonde")
    sonde, attacher = start(path, target, {"SUDO_UID": "1234", "SUDO_GID": "5678"})
    worker, other = status(sonde.pid), status(attacher) if attacher else {}
    none = [worker[c] for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
    ok(all(int(c, 16) == 0 for c in none), "the worker has no capabilities", none)
    ok(worker["NoNewPrivs"] == "1", "the worker can't gain any by exec", worker["NoNewPrivs"])
    own = [str(sondes_account())] * 4
    ok(worker["Uid"].split() == own and worker["Gid"].split() != ["0"] * 4 and not worker["Groups"].split(),
       "the worker has an account of its own", (worker["Uid"], worker["Gid"], worker["Groups"]))
    st = os.stat(path)
    ok((st.st_uid, st.st_gid, st.st_mode & 0o777) == (1234, 5678, 0o600), "the trace belongs to the user behind sudo", st)
    # a process of the same user may not inspect it
    look = subprocess.run(["cat", f"/proc/{sonde.pid}/environ"], user=1234, group=5678, extra_groups=[],
                          capture_output=True)
    if os.path.basename(os.path.dirname(SONDE)) != "san":
        ok(look.returncode != 0, "other processes of that account can't read its memory", look)
    want = sum(1 << bit for bit in CAPS.values())
    ok(attacher and int(other["CapEff"], 16) == want == int(other["CapPrm"], 16), "the attacher has five capabilities",
       other.get("CapEff"))
    ok(attacher and other["NoNewPrivs"] == "1", "the attacher can't gain others", other.get("NoNewPrivs"))
    # while it serves a request it has the request's file, too
    wait_for(lambda: len(files_of(attacher)) <= 1)
    files = files_of(attacher)
    ok(len(files) <= 1 and all("libcudart" in f for f in files), "it has no open files except its socket, programs, links and the file probed last", files)
    sonde.send_signal(signal.SIGINT)
    _, err = sonde.communicate(timeout=60)
    ok(sonde.returncode == 0 and wait_gone(attacher), "both processes end", (sonde.returncode, err))

    sonde, attacher = start(os.path.join(TMP, "none.sonde"), target)
    ok(status(sonde.pid)["Uid"].split() == [str(sondes_account())] * 4, "without sudo both processes have the same rights", status(sonde.pid)["Uid"])
    sonde.send_signal(signal.SIGINT)
    sonde.communicate(timeout=60)


def check_perf_events(target):
    sonde, attacher = start(os.path.join(TMP, "perf.sonde"), target, {"SONDE_TEST": "no-session,no-multi"})
    want = sum(1 << bit for bit in CAPS.values()) | 1 << 21
    caps = status(attacher)["CapEff"]
    ok(int(caps, 16) == want, "for perf events the attacher has CAP_SYS_ADMIN too", caps)
    ok(int(status(sonde.pid)["CapEff"], 16) == 0, "the worker still has no capabilities")
    sonde.send_signal(signal.SIGINT)
    _, err = sonde.communicate(timeout=100)
    ok(sonde.returncode == 0, "perf events are attached", err)


def check_worker_killed(target):
    sonde, attacher = start(os.path.join(TMP, "worker.sonde"), target)
    probed = text_differs(target.pid, "libcudart")
    sonde.kill()
    sonde.communicate()
    ok(probed > 0 and wait_gone(attacher), "the worker is killed: the attacher ends", probed)
    # waits, because the kernel may still be removing breakpoints of the recording before
    differing = wait_clean(target)
    ok(not differing, "the attacher has removed the probes", differing)


def check_attacher_killed(target):
    path = os.path.join(TMP, "attacher.sonde")
    sonde, attacher = start(path, target)
    wait_for(lambda: any(True for _ in Trace(path).events("cuda_alloc")), pause=0.3)
    os.kill(attacher, signal.SIGKILL)
    _, err = sonde.communicate(timeout=60)
    ok(sonde.returncode == 1 and "sonde-attacher" in err, "the attacher is killed: the worker reports it", (sonde.returncode, err))
    verify = subprocess.run([SONDE, "info", path, "--verify"], capture_output=True, text=True)
    ok(verify.returncode == 0, "the trace verifies", verify.stderr)
    ok(any(True for _ in Trace(path).events("cuda_alloc")), "the trace has the events up to then")
    differing = wait_clean(target)
    ok(differing == 0, "no breakpoint is left", f"{differing} bytes differ")


def started(*args, **kw):
    """A program that has mapped its library"""
    target = subprocess.Popen(*args, **kw)
    wait_for(lambda: "libcudart" in (proc_files.read(f"/proc/{target.pid}/maps") or ""))
    return target


def main():
    if os.geteuid():
        skip("two processes", "not root")
        done()
    programs = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
    if not programs:
        skip("two processes", "no CUDA runtime library is available")
        done()
    target = started([programs[0], "600"])
    try:
        check_rights(target)
        check_worker_killed(target)
        check_attacher_killed(target)
        ok(target.poll() is None, "the target continues", target.returncode)
    finally:
        target.kill()
        target.wait()
    target = started([programs[0], "600"], env=fake_runtime())
    try:
        check_perf_events(target)
    finally:
        target.kill()
        target.wait()


main()
done()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""The two processes of a recording: what each may do, and what remains when one of them is killed."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from account import sondes_account
from process_text import text_differs
from sonde_trace import Trace
from tap import done, ok, skip

CAPS = {"BPF": 39, "PERFMON": 38, "SYS_PTRACE": 19, "DAC_READ_SEARCH": 2, "CHECKPOINT_RESTORE": 40}  # linux/capability.h


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def attacher_of(pid):
    """The child of that name; None: there is none."""
    for path in glob.glob("/proc/[0-9]*/status"):
        try:
            s = status(path.split("/")[2])
        except OSError:
            continue
        if s.get("Name") == "sonde-attacher" and int(s["PPid"]) == pid:
            return int(s["Pid"])
    return None


def start(path, target, env=None):
    """A recording of the target that is live, and its attacher."""
    sonde = subprocess.Popen([SONDE, "record", "-o", path, "-t", "cuda,proc", "-p", str(target.pid)],
                             stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
    line = sonde.stderr.readline()
    while line and "tracing into" not in line:
        line = sonde.stderr.readline()
    return sonde, attacher_of(sonde.pid)


def wait_gone(pid):
    for _ in range(300):
        if not os.path.exists(f"/proc/{pid}"):
            return True
        time.sleep(0.1)
    return False


def wait_clean(target):
    for _ in range(100):
        differing = text_differs(target.pid, "libcudart")
        if not differing:
            break
        time.sleep(0.1)
    return differing


def check_rights(target):
    path = os.path.join(TMP, "rights.sonde")
    sonde, attacher = start(path, target, {"SUDO_UID": "1234", "SUDO_GID": "5678"})
    worker, other = status(sonde.pid), status(attacher) if attacher else {}
    none = [worker[c] for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
    ok(all(int(c, 16) == 0 for c in none), "the worker has no capability", none)
    ok(worker["NoNewPrivs"] == "1", "and gets none by exec", worker["NoNewPrivs"])
    own = [str(sondes_account())] * 4
    ok(worker["Uid"].split() == own and worker["Gid"].split() != ["0"] * 4 and not worker["Groups"].split(),
       "it has an account of its own", (worker["Uid"], worker["Gid"], worker["Groups"]))
    st = os.stat(path)
    ok((st.st_uid, st.st_gid, st.st_mode & 0o777) == (1234, 5678, 0o600), "the trace belongs to the user behind sudo", st)
    # a process of the same user may not look into it
    look = subprocess.run(["cat", f"/proc/{sonde.pid}/environ"], user=1234, group=5678, extra_groups=[],
                          capture_output=True)
    if os.path.basename(os.path.dirname(SONDE)) != "san":
        ok(look.returncode != 0, "whose other processes can't read its memory", look)
    want = sum(1 << bit for bit in CAPS.values())
    ok(attacher and int(other["CapEff"], 16) == want == int(other["CapPrm"], 16), "the attacher has five capabilities",
       other.get("CapEff"))
    ok(attacher and other["NoNewPrivs"] == "1", "and gets no other", other.get("NoNewPrivs"))
    files = [os.readlink(f) for f in glob.glob(f"/proc/{attacher}/fd/*")]
    strange = [f for f in files if not re.match(r"/dev/null$|socket:|anon_inode:\[?bpf[-_](prog|link)|anon_inode:bpf", f)]
    probed = [f for f in strange if "libcudart" in f]
    ok(strange == probed and len(probed) <= 1, "and nothing open but its socket, programs, links and what it probed last", strange)
    sonde.send_signal(signal.SIGINT)
    _, err = sonde.communicate(timeout=60)
    ok(sonde.returncode == 0 and wait_gone(attacher), "both end", (sonde.returncode, err))

    sonde, attacher = start(os.path.join(TMP, "none.sonde"), target)
    ok(status(sonde.pid)["Uid"].split() == [str(sondes_account())] * 4, "without sudo too", status(sonde.pid)["Uid"])
    sonde.send_signal(signal.SIGINT)
    sonde.communicate(timeout=60)


def check_perf_events(target):
    sonde, attacher = start(os.path.join(TMP, "perf.sonde"), target, {"SONDE_TEST": "no-session,no-multi"})
    want = sum(1 << bit for bit in CAPS.values()) | 1 << 21
    caps = status(attacher)["CapEff"]
    ok(int(caps, 16) == want, "for perf events it has CAP_SYS_ADMIN too", caps)
    ok(int(status(sonde.pid)["CapEff"], 16) == 0, "and the worker still nothing")
    sonde.send_signal(signal.SIGINT)
    _, err = sonde.communicate(timeout=100)
    ok(sonde.returncode == 0, "which are attached", err)


def check_worker_killed(target):
    sonde, attacher = start(os.path.join(TMP, "worker.sonde"), target)
    probed = text_differs(target.pid, "libcudart")
    sonde.kill()
    sonde.communicate()
    ok(probed > 0 and wait_gone(attacher), "the worker is killed: the attacher ends", probed)
    ok(not text_differs(target.pid, "libcudart"), "and has taken the probes off")


def check_attacher_killed(target):
    path = os.path.join(TMP, "attacher.sonde")
    sonde, attacher = start(path, target)
    time.sleep(1)
    os.kill(attacher, signal.SIGKILL)
    _, err = sonde.communicate(timeout=60)
    ok(sonde.returncode == 1 and "sonde-attacher" in err, "the attacher is killed: the worker says so", (sonde.returncode, err))
    verify = subprocess.run([SONDE, "info", path, "--verify"], capture_output=True, text=True)
    ok(verify.returncode == 0, "the trace verifies", verify.stderr)
    ok(any(True for _ in Trace(path).events("cuda_alloc")), "and has what came before")
    differing = wait_clean(target)
    ok(differing == 0, "and no breakpoint is left", f"{differing} bytes differ")


def main():
    if os.geteuid():
        skip("two processes", "not root")
        done()
    programs = sorted(glob.glob(os.path.join(B, "tests/workloads/cuda_calls-??")))
    if not programs:
        skip("two processes", "no CUDA runtime library could be had")
        done()
    target = subprocess.Popen([programs[0], "600"])
    try:
        time.sleep(0.3)
        check_rights(target)
        check_perf_events(target)
        check_worker_killed(target)
        check_attacher_killed(target)
        ok(target.poll() is None, "the target runs on", target.returncode)
    finally:
        target.kill()
        target.wait()


main()
done()

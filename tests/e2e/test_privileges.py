#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""sonde's processes have the rights that docs/security.md states, and a compromised worker is refused everything else."""
import importlib.util
import os
import re
import subprocess
import tempfile

import proc_files
from tap import done, ok, skip_all

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
DOC = os.path.join(ROOT, "docs/security.md")
# Each line that tests/switches/captured.c prints, with its expected result
DENIED = {
    "open /etc/shadow": "Permission denied",
    "open /etc/passwd": "Permission denied",
    "open /proc/1/maps": "Permission denied",
    "create a file": "Permission denied",
    "remove a file": "Permission denied",
    "set a layout": "done",
}


def record(tmp, switch, *words):
    trace = os.path.join(tmp, f"{switch.split(':')[0] or 'plain'}.sonde")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")} | {"SONDE_TEST": switch}
    r = subprocess.run([SONDE, "record", "-t", "proc,gil,python", "-o", trace, *words], capture_output=True, text=True, timeout=60,
                       env=env, check=False)
    return r, trace


def own_file(tmp):
    """A file that a compromised process tries to remove, in a folder in which any user may do so"""
    folder = os.path.join(tmp, "open")
    os.makedirs(folder, exist_ok=True)
    os.chmod(tmp, 0o755)
    os.chmod(folder, 0o777)
    path = os.path.join(folder, "file")
    with open(path, "w", encoding="utf-8"):
        return path


def captured(tmp):
    victim = own_file(tmp)
    r, trace = record(tmp, f"captured:{victim}", "-d", "2")
    ok(os.path.exists(victim), "a compromised worker removes no file")
    said = dict(re.findall(r"^captured: (.*): ([^:]*)$", r.stderr, re.M))
    ok(len(said) == 30, "a compromised worker makes all attempts", r.stderr)
    for what, result in said.items():
        expected = DENIED.get(what, "Operation not permitted")
        ok(result == expected, f"a compromised worker: {what}: {expected}", result)
    ok(r.returncode == 1, "a refused system call makes the recording fail", r.returncode)
    ok("the filter of system calls refused execve to sonde" in r.stderr, "the refused system call is named", r.stderr)
    verified = subprocess.run([SONDE, "info", "--verify", trace], capture_output=True, text=True, check=False)
    ok(verified.returncode == 0, "the trace up to then is readable", verified.stderr)


def confined(tmp):
    """Features of a usual recording (a command's signal, a search for libraries, a second family) need no refused system call."""
    r, _ = record(tmp, "", "-F", "99", "-t", "+sched,syscall,lock,disk,net,sample", "--", "/usr/bin/python3", "-c",
                  "import time, socket; socket.socket(); time.sleep(0.5)")
    ok(r.returncode == 0 and "refused" not in r.stderr and "confined" not in r.stderr,
       "a recording with a command needs no other system call", r.stderr)


def lacking(tmp):
    """A kernel without seccomp: the recording continues, and a message has the processes that lack a part of their confinement."""
    r, _ = record(tmp, "no-seccomp", "--", "/usr/bin/python3", "-c", "pass")
    lines = [line for line in r.stderr.splitlines() if "less confined" in line]
    ok(r.returncode == 0 and len(lines) == 1 and lines[0].count("its system calls are not filtered") == 2 and
       "sonde-attacher, which attaches, and its children:" in lines[0], "what the attacher lacks of its confinement is reported", r.stderr)


# Expected results of opening files in the reader of source files, doctor and the shim's loader: the files' modes decide
OPENS = {"open /etc/shadow": ("Permission denied", "done"), "open /etc/passwd": ("done",),
         "open /proc/1/maps": ("Permission denied", "done"), "create a file": ("Operation not permitted",)}


def tried(name, words, victim, allowed=None):
    """Runs a command that behaves as if its input had compromised it: each attempt except those in `allowed` is refused."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")} | {"SONDE_TEST": f"captured:{victim}"}
    r = subprocess.run([SONDE, *words], capture_output=True, text=True, timeout=60, env=env, check=False)
    said = re.findall(r"^captured: (.*): ([^:]*)$", r.stderr, re.M)
    expected = {what: (result,) for what, result in DENIED.items()} | (allowed or {})
    wrong = [x for x in said if x[1] not in expected.get(x[0], ("Operation not permitted",))]
    ok(len(said) >= 15 and not wrong and os.path.exists(victim), f"{name}, compromised: every attempt is refused", wrong, r.stderr[-800:])
    ok("the filter of system calls refused" in r.stderr and r.returncode not in (0, 3), f"{name}: the refused call is named",
       r.returncode, r.stderr[-800:])


def readers(tmp):
    trace, victim = os.path.join(tmp, "plain.sonde"), own_file(tmp)
    library = os.path.join(B, "tests", "fakes", "libcudart.so")
    tried("report", ["report", trace], victim)
    tried("report lines", ["report", trace, "lines"], victim, OPENS)
    tried("info", ["info", trace], victim)
    tried("export to standard output", ["export", trace, "--to", "text"], victim)
    tried("export to a file", ["export", trace, "--to", "sqlite", "-o", os.path.join(tmp, "x.db")], victim)
    tried("list probes --resolve", ["list", "probes", "--resolve", library], victim)
    target = subprocess.Popen(["/usr/bin/python3", "-c", "import time; print(1, flush=True); time.sleep(100)"],
                              stdout=subprocess.PIPE)
    target.stdout.readline()
    try:
        tried("list probes --resolve PID", ["list", "probes", "--resolve", str(target.pid)], victim)
        tried("dump", ["dump", str(target.pid)], victim)
        # these need to inspect any process: they may open files that other users can't, but not write
        observes = OPENS | {"get a descriptor of init": ("done",), "read another's memory": ("done",)}
        tried("doctor", ["doctor"], victim, observes)
        # it writes the process's memory, which is a file
        tried("inject", ["inject", str(target.pid)], victim, OPENS)
    finally:
        target.kill()
        target.communicate()


def task_reader(attacher, tasks, target):
    """The child that reads asyncio's tasks inherits a filter and no_new_privs from the attacher, but not the loss of capabilities."""
    its, parents = proc_files.status(tasks), proc_files.status(attacher)
    ok(all(int(its[f"Cap{name}"], 16) == 0 for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")), "sonde-tasks has no capability", its)
    ok(its["NoNewPrivs"] == "1" and its["Seccomp"] == "2" and int(its["Seccomp_filters"]) == int(parents["Seccomp_filters"]) + 1,
       "and a filter of system calls besides the attacher's", its)
    files = proc_files.open_files(tasks)
    ok(files.pop(0, "").startswith("socket:") and list(files.values()) == [f"/proc/{target}/mem"],
       "and no descriptor but its socket and the process's memory", files)


def table():
    spec = importlib.util.spec_from_file_location("security_table", os.path.join(ROOT, "scripts/security-table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(DOC, encoding="utf-8") as f:
        _, written, _ = module.in_doc(f.read())
    found = module.table(SONDE, task_reader)
    ok(found == written, "docs/security.md has the capabilities of these processes", found)


def main():
    if os.geteuid():
        skip_all("recording needs root")
    if subprocess.run(["unshare", "-mni", "true"], capture_output=True, check=False).returncode:
        skip_all("no namespaces can be made here")
    with tempfile.TemporaryDirectory() as tmp:
        captured(tmp)
        confined(tmp)
        lacking(tmp)
        readers(tmp)
        table()


if __name__ == "__main__":
    main()
    done()

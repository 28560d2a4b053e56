#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What docs/security.md says of sonde's processes: its table, and what a worker that was taken over is refused."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import done, ok, skip_all

ROOT, B, SONDE = os.environ["ROOT"], os.environ["B"], os.environ["SONDE"]
DOC = os.path.join(ROOT, "docs/security.md")
# Each line that user/record/captured.c prints, and what it must say
DENIED = {
    "open /etc/shadow": "Permission denied",
    "open /etc/passwd": "Permission denied",
    "open /proc/1/maps": "Permission denied",
    "create a file": "Permission denied",
    "remove a file": "Permission denied",
    "set a layout": "done",
}


def record(tmp, switch, *words):
    trace = os.path.join(tmp, f"{switch or 'plain'}.sonde")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")} | {"SONDE_TEST": switch}
    r = subprocess.run([SONDE, "record", "-t", "proc,gil,python", "-o", trace, *words], capture_output=True, text=True, timeout=60,
                       env=env, check=False)
    return r, trace


def captured(tmp):
    r, trace = record(tmp, "captured", "-d", "2")
    said = dict(re.findall(r"^captured: (.*): ([^:]*)$", r.stderr, re.M))
    ok(len(said) == 30, "a captured worker tries all", r.stderr)
    for what, result in said.items():
        expected = DENIED.get(what, "Operation not permitted")
        ok(result == expected, f"a captured worker: {what}: {expected}", result)
    ok(r.returncode == 1, "a refused system call is no success", r.returncode)
    ok("the filter of system calls refused execve to sonde" in r.stderr, "it is named", r.stderr)
    verified = subprocess.run([SONDE, "info", "--verify", trace], capture_output=True, text=True, check=False)
    ok(verified.returncode == 0, "what was written before is readable", verified.stderr)


def confined(tmp):
    """Nothing is missing here; a command's signal, a library that is searched for, a second family: no call is refused."""
    r, _ = record(tmp, "", "-F", "99", "-t", "+sched,syscall,lock,disk,net,sample", "--", "/usr/bin/python3", "-c",
                  "import time, socket; socket.socket(); time.sleep(0.5)")
    ok(r.returncode == 0 and "refused" not in r.stderr and "confined" not in r.stderr,
       "a recording with a command needs no other system call", r.stderr)


def lacking(tmp):
    """A kernel without filters of system calls: it goes on, probes are confirmed, and one line says what lacks what."""
    r, _ = record(tmp, "no-seccomp", "--", "/usr/bin/python3", "-c", "pass")
    lines = [line for line in r.stderr.splitlines() if "less confined" in line]
    ok(r.returncode == 0 and len(lines) == 1 and lines[0].count("its system calls are not filtered") == 2 and
       "sonde-attacher, which attaches, and its children:" in lines[0], "what the attacher lacks of its confinement is reported", r.stderr)


# What a reader that opens source files, doctor, and what loads the shim get for opening files: the files' own modes decide
OPENS = {"open /etc/shadow": ("Permission denied", "done"), "open /etc/passwd": ("done",),
         "open /proc/1/maps": ("Permission denied", "done"), "create a file": ("Operation not permitted",)}


def tried(name, words, allowed=None):
    """A command that behaves as if what it reads had taken it over: each try is refused but for those in `allowed`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")} | {"SONDE_TEST": "captured"}
    r = subprocess.run([SONDE, *words], capture_output=True, text=True, timeout=60, env=env, check=False)
    said = re.findall(r"^captured: (.*): ([^:]*)$", r.stderr, re.M)
    expected = {what: (result,) for what, result in DENIED.items()} | (allowed or {})
    wrong = [x for x in said if x[1] not in expected.get(x[0], ("Operation not permitted",))]
    ok(len(said) >= 15 and not wrong, f"{name}, taken over: all that it tries is refused", wrong, r.stderr[-800:])
    ok("the filter of system calls refused" in r.stderr and r.returncode not in (0, 3), f"{name}: the refused call is named",
       r.returncode, r.stderr[-800:])


def readers(tmp):
    trace = os.path.join(tmp, "plain.sonde")
    library = os.path.join(B, "tests", "fakes", "libcudart.so")
    tried("report", ["report", trace])
    tried("report lines", ["report", trace, "lines"], OPENS)
    tried("info", ["info", trace])
    tried("export to standard output", ["export", trace, "--to", "text"])
    tried("export to a file", ["export", trace, "--to", "sqlite", "-o", os.path.join(tmp, "x.db")])
    tried("list probes --resolve", ["list", "probes", "--resolve", library])
    target = subprocess.Popen(["/usr/bin/python3", "-c", "import time; print(1, flush=True); time.sleep(100)"],
                              stdout=subprocess.PIPE)
    target.stdout.readline()
    try:
        tried("list probes --resolve PID", ["list", "probes", "--resolve", str(target.pid)])
        tried("dump", ["dump", str(target.pid)])
        # their rights are to look into any process: they may open what others can't, and write no file
        observes = OPENS | {"get a descriptor of init": ("done",), "read another's memory": ("done",)}
        tried("doctor", ["doctor"], observes)
        # the process's memory is a file that it writes
        tried("inject", ["inject", str(target.pid)], OPENS)
    finally:
        target.kill()
        target.communicate()


def table():
    spec = importlib.util.spec_from_file_location("security_table", os.path.join(ROOT, "scripts/security-table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(DOC, encoding="utf-8") as f:
        _, written, _ = module.in_doc(f.read())
    found = module.table(SONDE)
    ok(found == written, "docs/security.md has what these processes hold", found)


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

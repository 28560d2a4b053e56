#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What docs/security.md says of sonde's processes: its table, and what a worker that was taken over is refused."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

ROOT, SONDE = os.environ["ROOT"], os.environ["SONDE"]
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
count = 0


def ok(passed, name, *why):
    global count
    count += 1
    for line in "\n".join(map(str, why)).splitlines() if not passed else []:
        print(f"# {line}")
    print(f"{'' if passed else 'not '}ok {count} - {name}", flush=True)


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
        print("1..0 # SKIP recording needs root")
        return
    if subprocess.run(["unshare", "-mni", "true"], capture_output=True, check=False).returncode:
        print("1..0 # SKIP no namespaces can be made here")
        return
    with tempfile.TemporaryDirectory() as tmp:
        captured(tmp)
        confined(tmp)
        table()


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""steps.py STEP: what the virtual machine does and checks. Prints TAP, and lines "= NAME<tab>FIGURE" for the table of kernels."""
import glob
import os
import subprocess
import sys

QUICK_STEPS = ["programs", "doctor", "record"]
EVERY_STEP = [*QUICK_STEPS, "options", "compilers"]
OLD_STEPS = ["old"]

SONDE = os.environ.get("SONDE", "")
number = 0


def ok(good, name, *why):
    global number
    number += 1
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    for w in why if not good else ():
        for line in str(w).splitlines()[-40:]:
            print("# " + line, flush=True)
    return good


def skip(name, why):
    global number
    number += 1
    print(f"ok {number} - {name} # SKIP {why}", flush=True)


def figure(name, value):
    print(f"= {name}\t{value}", flush=True)


def run(*command, limit=300):
    """(status, stdout and stderr); both are printed, for who reads the log."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=limit)
    print("\n".join(f"  {line}" for line in [f"$ {' '.join(command)}", *done.stdout.splitlines(), f"-> {done.returncode}"]), flush=True)
    return done.returncode, done.stdout


def programs():
    """Each BPF program by itself."""
    load_each()


def options():
    """Once more with every option of every family on, and as kernels before 6.13 have it."""
    load_each("-o")
    load_each("-n")


def compilers():
    """The programs as other compilers make them, each by itself: see tests/vm/compilers."""
    objects = sorted(glob.glob(os.path.join(os.environ["B"], "tests/vm/*.bpf.o")))
    for o in objects:
        load_each(o)
    if not objects:
        skip("programs of other compilers", "none were made by tests/vm/compilers")


def load_each(*options):
    status, text = run(os.path.join(os.environ["B"], "tests/vm/load_each"), *options, limit=900)
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") >= 7]
    refused = [r for r in rows if r[2].startswith("refused")]
    name = " ".join(["programs", *map(os.path.basename, options)])
    ok(rows and not refused and status == 0, f"{name}: all are loaded",
       *[f"{r[1]}: {r[0]}: {r[2]}" for r in refused], "" if rows else text)
    processed = [int(r[4]) for r in rows]
    figure(name, f"{sum(r[2] == 'ok' for r in rows)} loaded, {len(refused)} refused, {sum(r[2] == 'absent' for r in rows)} absent")
    figure(f"{name}: instructions processed", f"{sum(processed)}, {max(processed or [0])} in the largest")


def doctor():
    status, text = run(SONDE, "doctor")
    ok(status == 0, "doctor says yes", text)


def record():
    status, text = run(SONDE, "record", "-d", "3", "-o", "/tmp/first.sonde", limit=600)
    ok(status == 0, "record", text)
    status, text = run(SONDE, "report", "/tmp/first.sonde")
    ok(status == 0, "report", text)


def old():
    """A kernel before 6.1."""
    for command in (["record", "-d", "1", "-o", "/tmp/x.sonde"], ["doctor"], ["top", "-d", "1"], ["dump", "1"]):
        status, text = run(SONDE, *command)
        ok(status == 1 and "sonde needs Linux 6.1 (this is 5.10" in text, f"{command[0]} names the kernel that it needs", text)


def main():
    globals()[sys.argv[1]]()
    print(f"1..{number}")


if __name__ == "__main__":
    main()

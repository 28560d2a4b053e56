#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""readme-reports.py [--record|--lists] SONDE DIR FILE..: puts the real output of commands into the docs.

In a FILE, what stands between `<!-- output: COMMAND -->` and `<!-- end -->` is replaced by a block with the command and
its output; `<!-- output: COMMAND | 12 lines -->` keeps the first lines. The commands are run in DIR, where --record (as
root) first makes the traces that they read: demo.sonde by scripts/demo.sh, slow.sonde and mended.sonde by
tests/workloads/journal.py. `make readme` does all of it. --lists
replaces the output of `sonde list` alone, which needs no trace: `make docs` does this. The texts around name what is most and how much: on a machine that
has other work --record refuses, because what it would put there would not fit them.
"""
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARKED = re.compile(r"<!-- output: (.*?) -->\n.*?<!-- end -->", re.S)
JOURNAL = os.path.join(ROOT, "tests/workloads/journal.py")


def busy_percent(seconds=2):
    """The CPU time that other processes and the host take, from the first line of /proc/stat"""
    def read():
        with open("/proc/stat") as f:
            fields = [int(word) for word in f.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 100 * (1 - (idle_after - idle) / (total_after - total))


def record(sonde, directory):
    busy = busy_percent()
    if busy > 10:
        sys.exit(f"readme-reports.py: {busy:.0f}% of this machine's CPU time goes elsewhere: the figures would not fit the texts.\n"
                 "Run it when the machine is idle; without --record it uses the traces that are there.")
    gpu = os.path.exists("/dev/nvidiactl") or os.path.exists(os.path.join(os.path.dirname(sonde), "tests/fakes/cuda/13/libcupti.so.13"))
    if not gpu:
        sys.exit("readme-reports.py: there is no GPU and no doubles of CUDA's libraries (scripts/cuda.sh 13, scripts/cupti.sh 13, make workloads):\n"
                 "the README's reports on a GPU would be empty.")
    subprocess.run([os.path.join(ROOT, "scripts/demo.sh"), os.path.dirname(sonde)], check=True,
                   env={**os.environ, "DEMO_ONLY": "1"})
    os.replace(os.path.join(ROOT, "demo.sonde"), os.path.join(directory, "demo.sonde"))
    for name, words in (("slow", []), ("mended", ["batch"])):
        with open(os.path.join(directory, name + ".out"), "w") as out:
            subprocess.run([sonde, "record", "-f", "-o", name + ".sonde", "-t", "+syscall,lock,disk", "--",
                            "/usr/bin/python3", JOURNAL, "3", *words], cwd=directory, stdout=out, check=True)


def output(sonde, directory, marker):
    command, *more = [part.strip() for part in marker.split("|")]
    words = command.split()
    argv = [sonde, *words[1:]] if words[0] == "sonde" else words
    done = subprocess.run(argv, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    if done.returncode not in (0, 3):
        sys.exit(f"readme-reports.py: {command}: {done.stdout}")
    lines = [line.rstrip().replace(directory + "/", "").replace(ROOT + "/", "") for line in done.stdout.rstrip("\n").split("\n")]
    if more:
        limit = int(more[0].split()[0])
        lines = lines[:limit] + ["..."] * (len(lines) > limit)
    return "\n".join(["```", "$ " + command, *lines, "```"])


def main():
    args = sys.argv[1:]
    option = args.pop(0) if args[:1] in (["--record"], ["--lists"]) else ""
    sonde, directory, *files = args
    sonde, directory = os.path.abspath(sonde), os.path.abspath(directory)
    os.makedirs(directory, exist_ok=True)
    if option == "--record":
        record(sonde, directory)
    for path in files:
        with open(path) as f:
            text = f.read()
        new = MARKED.sub(lambda m: f"<!-- output: {m[1]} -->\n{output(sonde, directory, m[1])}\n<!-- end -->"
                         if m[1].startswith("sonde list ") or option != "--lists" else m[0], text)
        with open(path, "w") as f:
            f.write(new)


main()

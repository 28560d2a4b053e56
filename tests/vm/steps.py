#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""steps.py STEP SECONDS: runs one step of the virtual machine's tests. Prints TAP, and lines "= NAME<tab>FIGURE" for the table of kernels."""
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bounded import Bound, show_progress
from tap import done, ok, skip

QUICK_STEPS = ["programs", "two"]
EVERY_STEP = ["programs", "options", "compilers", "doctor", "record", "together", "named", "alone", "slices", "live", "detach", "inject"]
OLD_STEPS = ["old"]

SONDE = os.environ.get("SONDE", "")
bound = None


def figure(name, value):
    print(f"= {name}\t{value}", flush=True)


def run(*command, env=None):
    """
    (status, stdout and stderr); both are printed, indented, for the log. A file takes the output, not a pipe, whose end
    would be waited for where a process outlives its parent. What does not end is ended with the step.
    """
    print(f"  $ {' '.join(command)}", flush=True)
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        def text():
            with open(f"/proc/self/fd/{out.fileno()}", errors="replace") as f:
                return f.read()
        bound.command, bound.output = " ".join(command), text
        status = subprocess.call(command, env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        bound.command, output = None, text()
    print("\n".join(f"  {line}" for line in [*output.splitlines(), f"-> {status}"]), flush=True)
    return status, output


def programs():
    """Loads each BPF program by itself."""
    load_each()


def options():
    """Loads the programs with every option of every family, and as for kernels before 6.13."""
    load_each("-o")
    load_each("-n")


def compilers():
    """Loads the programs built by other compilers, each by itself: see tests/vm/compilers.sh."""
    objects = sorted(glob.glob(os.path.join(os.environ["B"], "tests/vm/*.bpf.o")))
    for o in objects:
        load_each(o)
    if not objects:
        skip("programs of other compilers", "none were made by tests/vm/compilers.sh")


def load_each(*options):
    status, text = run(os.path.join(os.environ["B"], "tests/vm/load_each"), *options)
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
    # 3: a family is traced in part, which must be because of a feature that this kernel lacks
    lines = [line for line in text.splitlines() if re.match(r"[a-z]+ +(partly|no) ", line)]
    wrong = [line for line in lines if not re.search(r"durations only with -p|this kernel has no tracepoint", line)]
    ok(status in (0, 3) and not wrong and "Families of probes" in text, "doctor: no family is refused", *wrong, text)
    figure("families in part", ", ".join(line.split()[0] for line in lines) or "none")


def record():
    status, text = run(SONDE, "record", "-d", "3", "-o", "/tmp/first.sonde")
    ok(status == 0, "record", text)
    status, text = run(SONDE, "report", "/tmp/first.sonde")
    ok(status == 0, "report", text)


# Families of a test's events: their lost records may be the ones that its checks miss
FAMILIES = {
    "probes/proc/test_life.py": "proc", "probes/syscall/test_calls.py": "syscall", "probes/lock/test_waits.py": "lock",
    "probes/net/test_talk.py": "net", "probes/sched/test_wakers.py": "sched", "probes/disk/test_io.py": "disk syscall sched",
    "probes/gil/test_waits.py": "gil", "probes/cuda/test_counts.py": "cuda cudadrv", "probes/nccl/test_fake.py": "nccl",
}
TOGETHER = [
    ["probes/proc/test_life.py"], ["probes/syscall/test_calls.py"], ["probes/lock/test_waits.py"], ["probes/net/test_talk.py"],
    ["probes/sched/test_wakers.py"], ["probes/disk/test_io.py", "direct"], ["probes/gil/test_waits.py"],
    ["probes/cuda/test_counts.py", "CUDA 12, session", "CUDA 13, session"],
]
# Tests with -p: before 6.13 returns are recorded only for named processes
NCCL = ["probes/nccl/test_fake.py"]
# Factor by which each end of a call is slower than on hardware, for comparisons with a program's own clock
SLOW = {"SLOW": "100", "GIL_PYTHON": "3.11 debian"}


def together(rounds=10, tests=TOGETHER):
    """
    Workloads of many families at once under one recording of everything, each with the checks of its own test. Those whose
    checks fail, or that come to none, run together again, twice at most, as in test().
    """
    from together import Together
    # an emulated machine needs 20 times as long to examine a file
    os.environ["SONDE_TEST"] = "unlimited-shares"
    missing, recordings = None, 0
    for tries in range(1, 4):
        t = Together(tests, SLOW, rounds)
        bound.describe = [t.describe]
        t.run()
        bound.describe = []
        lost = collections.Counter()
        for sonde in t.sondes:
            recordings += 1
            print(f"  $ {' '.join(sonde.command)}\n  " + "\n  ".join(sonde.said().splitlines()))
            ok(sonde.began and sonde.status == 0, f"recording {recordings}, with all families",
               f"exit status {sonde.status}" if sonde.began else "it did not begin", sonde.said())
            said = re.search(r"(\d+) events in [\d.]+ m?s.*; (\d+) lost", sonde.said())
            lost += losses(sonde.said())
            if sonde.began:
                missing = names_missing(sonde.path) & (set(NAMES.values()) if missing is None else missing)
            figure(f"recording {recordings}", f"{said[1]} events, {said[2]} lost" if said else "none")
        tests = [args for args, test in zip(tests, t.tests) if not together_judged(test, lost, tries)]
        if not tests:
            break
    del os.environ["SONDE_TEST"]
    # a recording lasts while any test takes part in it: later tests need not have all of it
    ok(missing is not None and not missing, f"events of {len(NAMES)} families", f"none of {', '.join(missing or NAMES.values())}")
    figure("families with events", f"{len(NAMES) - len(missing or ())} of {len(NAMES)}")


def together_judged(test, lost, tries):
    """Prints the test's result, unless it is to run again."""
    text = test.output()
    short = "/".join(test.name.split("/")[-2:])
    print("".join(f"  {line}\n" for line in text.splitlines()), end="")
    good, bad = tap(text, ALONE)
    # a test whose checks in ALONE fail also completes, but with another status
    ended = test.cut or re.search(r"^1\.\.\d+", text, re.M)
    wrong, excused = judge(short, checks(bad), lost_of(test.name, lost), tries == 3)
    ended = ended or (excused and not wrong)
    # one that asks for a second recording before its first check got an incomplete one, as disk/test_io.py does after a
    # completion that the kernel did not let a BPF program see
    judged = ended and (good or excused)
    if (wrong or not judged) and tries < 3:
        return False
    ok(judged and not wrong, f"{short}: {good} checks", *[line for c in wrong for line in c], *why_none(test, good, ended))
    figure(f"{short}, together", f"{good} right" + (f", {len(wrong)} wrong" if wrong else "") +
           (f", {excused} not judged" if excused else "") + (f" in try {tries}" if tries > 1 else ""))
    return True


def why_none(test, good, ended):
    """Lines for a test that passed no check or did not complete"""
    if good and ended:
        return []
    how = "ended here before its next recording" if test.cut else f"exit status {test.child.returncode}"
    return [f"{how}, having printed {'this' if test.output() else 'nothing'}", *test.output().splitlines()[-20:]]


NAMES = {1: "proc", 2: "sched", 3: "cuda", 4: "gil", 7: "syscall", 8: "disk", 9: "net", 10: "lock", 11: "python", 12: "sample"}


def names_missing(path):
    from sonde_trace import Trace
    found = {kind[0] >> 8 for chunk in Trace(path).chunks for kind in chunk.kinds}
    return {name for number, name in NAMES.items() if number not in found}


def losses(text):
    """{family: lost records} from the messages at a recording's end. A missing stack or end of a span is not a lost record."""
    found = collections.Counter()
    for family, n in re.findall(r"sonde: lost (\w+): ([\d,]+) records? ", text):
        found[family] += int(n.replace(",", ""))
    return found


def lost_of(test, lost):
    """The number of lost records that may belong to a test's families; records of core may belong to any."""
    return sum(lost[family] for family in ["core", *FAMILIES.get(test, "").split()])


def judge(short, failed, lost, last=True):
    """
    (the failed checks that are wrong, how many are not judged). Where its families lost records a check may fail for want of
    them: not if it counted more than there were, nor if what it counted and what was lost are together less than there were.
    One that does not count is skipped by name: what it misses can't be distinguished from what was lost. Not last: the test runs again
    if any is wrong, and nothing is printed then.
    """
    wrong, excused = [], []
    for check in failed:
        m = re.search(r"counted (\d+) of (\d+)", "".join(check))
        if not lost or (m and not int(m[1]) <= int(m[2]) <= int(m[1]) + lost):
            wrong.append(check + [f"# {lost} records of its families are reported as lost"] * bool(lost))
        else:
            excused.append((check[0], (m[0] + ", and " if m else "") + f"{lost} records of its families are reported as lost"))
    for name, why in excused if last or not wrong else ():
        skip(f"{short}: {name}", why)
    return wrong, len(excused)


def two():
    """Two families, for the gate: tracepoints, and uprobes of a library"""
    for path in ("probes/syscall/test_calls.py", "probes/gil/test_waits.py"):
        test(path)


def named():
    """Records the CUDA runtime's calls of a process of -p, each with its duration."""
    test("probes/cuda/test_counts.py", "session, -p")
    test(*NCCL)


SPINNING = """
import threading

def spinning():
    while True:
        for i in range(1000):
            pass
for _ in range(2):
    threading.Thread(target=spinning, daemon=True).start()
print("ready", flush=True)
input()
"""


def live():
    """Runs the commands that need no trace, beside two threads that contend for the GIL, and every report once."""
    child = subprocess.Popen(["/usr/bin/python3", "-c", SPINNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    pid = str(child.pid)
    status, text = run(SONDE, "dump", pid)
    ok(status == 0 and "spinning (" in text and "holds the GIL" in text, "dump: frames, and who holds the GIL", text)
    status, text = run(SONDE, "top", pid, "--plain", "--count", "3", "--interval", "2")
    ok(status == 0 and re.search(r"^blame .*spinning .* -> spinning", text, re.M), "top: who made whom wait for the GIL", text)
    ok(re.search(r"^cpu .*spinning", text, re.M), "top: what computes, by samples", text)
    status, text = run(SONDE, "record", "-f", "-t", "+sched", "-F", "49", "--off-cpu", "-p", pid, "-d", "3", "-o", "/tmp/live.sonde")
    ok(status == 0, "record -F -p", text)
    child.kill()
    for name in ("", "gil", "python", "offcpu", "processes", "losses"):
        status, text = run(SONDE, "report", "/tmp/live.sonde", *[name][:bool(name)])
        ok(status == 0 and text.strip(), f"report {name}".strip(), text)


def detach():
    """Attaches to and detaches from a busy program: afterwards its code equals the file, no link or program is left, no call is missing."""
    test("e2e/test_rounds.py", ROUNDS="2", TMPDIR="/tmp")


def slices():
    """Records in the slices of time of --cost-limit. Probes that are perf events, as on 6.1, are detached in another way."""
    test("probes/sched/test_slices.py")
    test("probes/gil/test_slices.py", "limited")


def inject():
    """Injects the shim into targets that check all their computations."""
    test("probes/gpu/test_inject.py", ROUNDS="1")


def checks(bad):
    """The failed checks, each as a list of lines"""
    found = []
    for line in bad:
        if line.startswith("not ok"):
            found.append([])
        found[-1].append(line)
    return found


def test(path, *args, **env):
    """
    A live test as it is, with sonde itself. An emulated machine can stop for a while during any check, so a test that
    fails is run again, twice at most; the table says in which try it passed.
    """
    began = time.monotonic()
    for tries in range(1, 4):  # noqa: B007
        status, text = run(os.path.join(os.environ["ROOT"], "tests", path), *args, env={**SLOW, **env})
        good, bad = tap(text)
        lost = lost_of(path, losses(text)) + sum(int(n) for n in re.findall(r"'count': (\d+)[^}]*'reason_name'", text))
        if not bad and status == 0:
            break
    short = " ".join(["/".join(path.split("/")[-2:]), *args])
    wrong, excused = judge(short, checks(bad), lost)
    ok(good and not wrong and (status == 0 or excused), f"{short}: {good} checks", *[line for c in wrong for line in c],
       *([] if bad else text.splitlines()[-20:]))
    figure(short, f"{good} right" + (f", {len(wrong)} wrong" if wrong else "") + (f", {excused} not judged" if excused else "") +
           (f" in try {tries}" if tries > 1 else "") + f", {time.monotonic() - began:.0f} s")


def alone():
    """Runs each of these tests by itself, as `make test` does."""
    for path, *args in TOGETHER:
        if "/cuda/" not in path:
            test(path, *args)


# Checks that hold only with -p, or that concern losses, which together() judges once for the shared recording
ALONE = re.compile("lost|no losses|without loss|wait that outlasts the trace|no other connections are|children end with a run|"
                   # under emulation functions may be looked up after the program has ended; judged alone on each kernel
                   r"a convoy have take\(\)|"
                   # the program that sees drops is attached at the first wait, which takes as long as all waits there
                   "who dropped it|no drop while the dropper has it")


def tap(text, left_out=re.compile("^$")):
    """(number of checks that passed, lines of those that failed)"""
    good, bad, failing = 0, [], False
    for line in text.splitlines():
        if re.match("(not )?ok ", line):
            failing = line.startswith("not ok") and not left_out.search(line)
            good += line.startswith("ok ") and "# SKIP" not in line
        elif not line.startswith("#"):
            failing = False
        if failing:
            bad.append(line[:300])
    return good, bad


def script():
    """Runs the script of tests/vm/run --script=FILE, for debugging."""
    status, _ = run("/bin/bash", "/root/script")
    ok(status == 0, "the script ends with status 0")


def old():
    """A kernel before 6.1."""
    for command in (["record", "-d", "1", "-o", "/tmp/x.sonde"], ["doctor"], ["top", "--count", "1"]):
        status, text = run(SONDE, *command)
        ok(status == 1 and "sonde needs Linux 6.1 (this is 5.10" in text, f"{command[0]} names the kernel that it needs", text)


def main():
    global bound
    show_progress()
    bound = Bound(float(sys.argv[2]))
    globals()[sys.argv[1]]()
    done()


if __name__ == "__main__":
    main()

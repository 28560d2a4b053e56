#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_samplers: sonde, py-spy and CPython 3.15's profiling.sampling, attached to the same program in turns.

The program, one busy thread, calls functions at depths of 3 to 60 frames in changing order, and sums the CPU time of each by its own clock. A row has, as
medians of ROUNDS (5) recordings of SECONDS (10): samples a second, the share of samples whose stack the program never has (or that the tool itself
counts as errors), the largest difference between a function's share of the samples and of the CPU time, with the bound that chance allows at one in a
million, the tool's CPU time, and the time in which the program did not run, beyond that of a round without a tool.
Peers: py-spy in PATH or build/peers/bin, a CPython 3.15 in build/sid (make test T=gil makes it). Nothing here passes or fails.
"""
import collections
import contextlib
import json
import math
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), *p) for p in ((), ("..", "lib"), ("..", "probes", "gil"))]
import gil_lib
from bounds import Z
from sonde_cli import B

SONDE = os.path.join(B, "sonde")
SPY = shutil.which("py-spy") or os.path.join(B, "peers/bin/py-spy")
ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "5")), int(os.environ.get("SECONDS", "10"))
WORK = """
import json, random, signal, sys, time
spent, stop = {}, []
def step(n):
    x = 0
    for i in range(n):
        x += i * i
    return x
def at_depth(depth, function, n):
    return at_depth(depth - 1, function, n) if depth else function(n)
def alpha(n): return step(n)
def beta(n): return step(n)
def gamma(n): return sorted(range(n), key=lambda v: -v)
def delta(n): return step(n)
def main():
    calls = [(f, weight * 500, depth) for f, weight in ((alpha, 1), (beta, 3), (gamma, 2), (delta, 6)) for depth in (1, 20, 58)] * 50
    random.Random(1).shuffle(calls)
    at = 0
    signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
    print("ready", flush=True)
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    while not stop:
        function, n, depth = calls[at]
        at = (at + 1) % len(calls)
        begun = time.thread_time_ns()
        at_depth(depth, function, n)
        spent[function.__name__] = spent.get(function.__name__, 0) + time.thread_time_ns() - begun
    print(json.dumps([spent, time.monotonic_ns() - wall, time.thread_time_ns() - cpu]), flush=True)
main()
"""
LEAVES = ("alpha", "beta", "gamma", "delta")
Row = collections.namedtuple("Row", "rate wrong off bound cpu stopped")


def is_true(names):
    """Does the program have this stack? names: from the outermost function inwards"""
    text = ";".join(n for n in names if n not in ("<GC>", "<native>"))
    # at_depth is called 2, 21 or 59 times, and on the way to it fewer; main stops by a lambda
    return re.fullmatch(r"<module>;main((;at_depth){1,59}(;(alpha|beta|delta)(;step)?|;gamma(;<lambda>)?)?)?(;<lambda>)?", text) is not None


def functions(frames):
    """The functions in frames such as `main (x.py:3)`, `x.py:main:3`, `x.py:3 main`"""
    known = {"main", "at_depth", "step", *LEAVES}
    found = []
    for frame in frames:
        words = [w for w in re.split(r"[\s:()]+", frame) if w]
        name = next((w for w in words if w.split(".")[-1] in known), None)
        name = name.split(".")[-1] if name else next((w for w in words if w.startswith("<") or w.endswith("<lambda>")), frame)
        found.append("<lambda>" if name.endswith("<lambda>") else name)
    return found


def read_stacks(path, commands):
    """(functions, samples) of each line of folded stacks, without the tool's line for the thread"""
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, n = line.rstrip("\n").rsplit(" ", 1)
            # sonde has native frames, too
            names = functions(f for f in stack.split(";") if commands is not sonde or ".py" in f)
            first = next((i for i, name in enumerate(names) if name in ("<module>", "main")), 0)
            yield names[first:], int(n)


def sonde(python, pid, out, rate):
    yield [SONDE, "record", "-t", "sample", "-f", "-o", out + ".sonde", "-F", str(rate), "-d", str(SECONDS), "-p", str(pid)]
    yield [SONDE, "export", out + ".sonde", "--to", "folded", "--event", "on-cpu", "-o", out]


def spy(python, pid, out, rate):
    yield [SPY, "record", "-r", str(rate), "-d", str(SECONDS), "-f", "raw", "-o", out, "-p", str(pid)]


def sampling(blocking):
    def commands(python, pid, out, rate):
        inside = "/tmp/" + os.path.basename(out)
        yield ["/usr/sbin/chroot", python.root, python.exe, "-m", "profiling.sampling", "attach", *blocking, "-a", "-r", str(rate), "-d", str(SECONDS),
               "--collapsed", "-o", inside, str(pid)]
        yield ["mv", python.root + inside, out]
    return commands


def measure(python, commands, rate, folder):
    out = os.path.join(folder, f"out{time.monotonic_ns()}")
    with open(os.path.join(folder, "work.py"), "w", encoding="utf-8") as f:
        f.write(WORK)
    with gil_lib.script(python, f.name) as command:
        work = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            work.stdout.readline()
            before, said = resource.getrusage(resource.RUSAGE_CHILDREN), ""
            if commands:
                run = commands(python, work.pid, out, rate)
                said = subprocess.run(next(run), capture_output=True, text=True, check=True)
                said = said.stdout + said.stderr
            else:
                time.sleep(SECONDS)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            work.send_signal(signal.SIGTERM)
            spent, wall, cpu = json.loads(work.stdout.readline())
        finally:
            work.kill()
            work.wait()
        for command in run if commands else ():
            subprocess.run(command, capture_output=True, check=True)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    stopped = 100 * (wall - cpu) / wall
    if not commands:
        return Row(0, 0, 0, 0, 0, stopped)
    stacks = list(read_stacks(out, commands))
    weight = {f: sum(n for names, n in stacks if f in names) for f in LEAVES}
    total = sum(n for _, n in stacks)
    samples = total * rate / 1e9 if commands is sonde else total  # sonde's weights are ns
    errors = re.search(r"[Ee]rror rate\D*([\d.]+)", said)
    wrong = 100 * sum(n for names, n in stacks if not is_true(names)) / total + (float(errors[1]) if errors else 0)
    off = {f: 100 * abs(weight[f] / sum(weight.values()) - spent[f] / sum(spent.values())) for f in LEAVES}
    worst = max(off, key=off.get)
    share = spent[worst] / sum(spent.values())
    bound = 100 * Z * math.sqrt(share * (1 - share) / samples)
    return Row(samples / SECONDS, wrong, off[worst], bound, 100 * used / SECONDS, stopped)


def main():
    found, _ = gil_lib.pythons()
    rows = [("3.13 pyenv", "nothing", None, 0)]
    for rate in (99, 999):
        rows.append(("3.13 pyenv", f"sonde -F {rate}", sonde, rate))
        rows.append(("3.13 pyenv", f"py-spy -r {rate}", spy, rate))
    rows.append(("3.15 sid", "nothing", None, 0))
    for rate in (99, 999):
        rows.append(("3.15 sid", f"sonde -F {rate}", sonde, rate))
        rows.append(("3.15 sid", f"profiling.sampling -r {rate}", sampling([]), rate))
        rows.append(("3.15 sid", f"the same, --blocking -r {rate}", sampling(["--blocking"]), rate))
    measured = collections.defaultdict(list)
    proc = found["3.15 sid"].root + "/proc" if "3.15 sid" in found else None
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ended:
        os.chmod(folder, 0o755)
        if proc:  # profiling.sampling reads /proc in this root
            subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
            ended.callback(subprocess.run, ["umount", proc], check=True)
        for _ in range(ROUNDS):
            for python, name, commands, rate in rows:
                if python not in found or (commands is spy and not os.access(SPY, os.X_OK)):
                    continue
                try:
                    measured[python, name].append(measure(found[python], commands, rate, folder))
                except subprocess.CalledProcessError as e:
                    print(name, "failed:", (e.stderr or "")[-300:], file=sys.stderr)
    print(f"{'CPython':12}{'tool':34}{'samples/s':>10}{'wrong %':>9}{'off by':>8}{'chance':>8}{'CPU %':>7}{'stopped %':>11}")
    for (python, name), got in measured.items():
        r = Row(*(statistics.median(values) for values in zip(*got)))
        rest = r.stopped - statistics.median(g.stopped for g in measured[python, "nothing"])
        print(f"{python:12}{name:34}{r.rate:10.0f}{r.wrong:9.2f}{r.off:8.2f}{r.bound:8.2f}{r.cpu:7.2f}{rest:11.2f}")


main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/incidents/run.py [NAME..]: tests whether the first findings of the report name a program's problem.

Each tests/incidents/NAME.py is a program with one planted cause, or with none (healthy_*). It is started, recorded by
`sonde record -d 5`, and `sonde report` is judged by its first three findings:

  named    one of them has a word for the cause, the function and `file.py:line`
  partly   a word for the cause or the function, but not both with the line
  no       neither

A healthy program passes if none of its first three findings states one of the causes that its MANIFEST calls false, but for
shares below 5%. Where a finding states a share, it is compared with what the program's own clocks measured meanwhile.
Prints TAP, a table and a sum.

  --record-args ARGS   options of `sonde record`; {pid} is the program's process
  --bystanders         adds ten working processes that have no part in the problem
  --busy               on a machine with other work: leaves out findings about other processes than the program's
  --keep DIR           leaves traces, reports and truths there
  --again DIR          judges the stored traces again, without recording
  --markdown FILE      writes the table for the docs, between the marks that FILE has for it
  --table NAME         these marks: alone, bystanders or further
  --lock FILE          takes this lock while a program runs, for machines on which others record too
  --dry                without sonde: checks that the programs run, and prints the share that they measure
  --list               prints the names and what is planted
"""
import argparse
import contextlib
import fcntl
import glob
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/lib")]
from lib import incident  # noqa: E402
from cards import cards  # noqa: E402
from marks import write_between_marks  # noqa: E402
import pip_packages  # noqa: E402
import tap  # noqa: E402

B = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(B, "sonde"))
PYTHON = os.environ.get("INCIDENTS_PYTHON", os.path.join(B, "venv/bin/python"))
LINES = 3
POINTS = 5  # allowed error of a share in a report
# Packages of the Python Package Index that the programs import
PACKAGES = ("gunicorn", "flask", "django", "uvicorn", "fastapi", "requests", "redis", "celery[redis]", "psycopg2-binary", "numpy")


class Missing(Exception):
    """A requirement of a program that this machine lacks"""


# ---- a run

def install():
    """Creates a virtual environment with the programs' packages. A package that can't be installed is reported as missing later."""
    marker = os.path.join(os.path.dirname(os.path.dirname(PYTHON)), "incidents")
    if os.path.exists(marker):
        return
    done = pip_packages.install(PYTHON, *PACKAGES)
    pip_packages.install_torch(PYTHON)
    if done:
        open(marker, "w").close()


def missing(described, python):
    for program in described.get("programs", ()):
        if not shutil.which(program) and not glob.glob(f"/usr/lib/postgresql/*/bin/{program}"):
            raise Missing(f"no {program}")
    if described.get("packages"):
        code = "import " + ", ".join(described["packages"])
        if not os.path.exists(python) or subprocess.run([python, "-c", code], capture_output=True, check=False).returncode:
            raise Missing(f"no {', '.join(described['packages'])} in {os.path.dirname(python)}")


class Program:
    """A running program of the corpus; its companions are in its session."""

    def __init__(self, path, python):
        env = {k: v for k, v in os.environ.items() if not k.startswith("INCIDENT_")}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([python, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=env, start_new_session=True)
        self.pid = self.process.pid
        first = self.line(90)
        if first.startswith("SKIP "):
            self.kill()
            raise Missing(first[5:].strip())
        if first != "READY\n":
            self.kill()
            self.errors.seek(0)
            raise RuntimeError(f"{os.path.basename(path)} did not get ready: {self.errors.read().decode()[-2000:]}")

    def line(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return ""
        return self.process.stdout.readline().decode()

    def pids(self):
        """The pids of its session and their descendants"""
        parents, found = {}, {self.pid}
        for folder in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError), open(folder + "/stat") as f:
                fields = f.read().rsplit(") ", 1)[1].split()
                parents[int(folder[6:])] = int(fields[1])
                if int(fields[3]) == self.pid:
                    found.add(int(folder[6:]))
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def end(self):
        """Ends the program and returns its truth."""
        text = ""
        for _ in range(30):
            if text or self.process.poll() is not None:
                break
            self.process.send_signal(signal.SIGTERM)  # a thread that has just begun may have taken the last one
            text = self.line(1)
        self.kill()
        return json.loads(text)

    def kill(self):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def record(args, path, pid):
    """Records, and returns (messages, start, end) with times of CLOCK_MONOTONIC."""
    options = shlex.split(args.record_args.replace("{pid}", str(pid)))
    if args.dry:
        start = time.perf_counter_ns()
        time.sleep(args.seconds)
        return "", start, time.perf_counter_ns()
    command = [SONDE, "record", "-d", str(args.seconds), "-f", "-o", path, *options]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    text, start = "", None
    for line in tracer.stderr:
        text += line
        if "tracing into" in line:
            start = time.perf_counter_ns()
    if tracer.wait() or start is None:
        raise RuntimeError(f"{' '.join(command)}: status {tracer.returncode}: {text}")
    return text, start, start + int(args.seconds * 1e9)


def run(path, args, keep):
    """Runs one program; returns its row of the table."""
    described, marks = incident.manifest(path)
    python = PYTHON if described["packages"] or os.path.exists(PYTHON) else "/usr/bin/python3"
    missing(described, python)
    trace = os.path.join(keep, os.path.basename(path)[:-3] + ".sonde")
    with lock(args.lock), bystanders(args):
        program = Program(path, python)
        try:
            time.sleep(1)
            pids = program.pids()
            messages, start, end = record(args, trace, program.pid)
            pids |= program.pids()
            truth = dict(program.end(), start=start, end=end, pids=sorted(pids))
        finally:
            program.kill()
    for name, text in (("record", messages), ("truth", json.dumps(truth))):
        with open(f"{trace[:-6]}.{name}", "w") as f:
            f.write(text)
    return report(args, trace, described, marks, truth)


def report(args, trace, described, marks, truth):
    """Reports a trace; returns the row of the table."""
    done = subprocess.run([SONDE, "report", trace, *shlex.split(args.report_args)], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    with open(f"{trace[:-6]}.report", "w") as f:
        f.write(done.stdout + done.stderr)
    lines = [". ".join(card) for card in cards(done.stdout.strip())]
    if args.busy:
        lines = [line for line in lines if not foreign(line, set(truth["pids"]))]
    return Row(described, marks, lines[:LINES], measured(described, truth))


def report_again(path, args):
    """Judges the traces that --keep left in a folder."""
    described, marks = incident.manifest(path)
    trace = os.path.join(args.again, os.path.basename(path)[:-3] + ".sonde")
    if not os.path.exists(trace):
        raise Missing("not recorded")
    with open(trace[:-6] + ".truth") as f:
        return report(args, trace, described, marks, json.load(f))


@contextlib.contextmanager
def lock(path):
    if not path:
        yield
        return
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def bystanders(args):
    if not args.bystanders:
        yield
        return
    program = Program(os.path.join(HERE, "lib/bystanders.py"), "/usr/bin/python3")
    try:
        yield
    finally:
        program.kill()


# ---- judging

def foreign(line, pids):
    """True if the ids before a line's first colon are those of another process than the program's"""
    named = [int(n) for n in re.findall(r"(?<=\s)\d{2,7}\b", line.split(":")[0].split(" waited ")[0])]
    return bool(named) and not pids & set(named)


def measured(described, truth):
    """The share of the recorded time that the clocks of the affected threads measured, per thread or in total"""
    width, base, shares = truth["bucket_ns"], truth["base"], []
    first, last = (truth["start"] - base) // width + 1, (truth["end"] - base) // width
    for thread in truth["threads"]:
        if thread["clock"] == described.get("clock") and last > first:
            shares.append(sum(thread["buckets"][first:last]) / ((last - first) * width))
    shares = [s for s in shares if s > 0.005]
    if not shares:
        return None
    return 100 * sum(shares) / (1 if described.get("share") == "sum" else len(shares))


class Row:
    """The planted cause, and the first findings of the report"""

    def __init__(self, described, marks, lines, share):
        self.described, self.lines, self.share = described, lines, share
        # Commands that a line suggests state nothing
        self.texts = [re.sub(r"`sonde [^`]*`", "", line) for line in lines]
        self.marks = [m for m in marks if m["what"] == "cause" or described.get("must") != "cause"]
        self.line, self.verdict = (self.judge_healthy if described["cause"] is None else self.judge)()

    def judge(self):
        best = (None, "no")
        for number, line in enumerate(self.texts, 1):
            word = self.has_words(line)
            code = any(self.has_code(line, m) for m in self.marks)
            if word and code:
                return number, "named"
            functions = [m["function"] for m in self.marks]
            if best[1] == "no" and (word or any(re.search(rf"(?<!\w){re.escape(f)}(?!\w)", line) for f in functions)):
                best = (number, "partly")
        return best

    def has_words(self, line):
        """True if the line has a word for the cause. A line that blames the GIL is wrong unless the MANIFEST names the GIL."""
        words = self.described["words"]
        line = re.sub(r"[\w./-]+\.py\b", "", line)  # a program's name may have the word
        if "GIL" in line and not any("GIL" in group for group in words):
            return False
        return all(any(re.search(rf"(?<![A-Za-z]){re.escape(w)}", line, re.I) for w in group) for group in words)

    def has_code(self, line, mark):
        """True if the line has the function and its line. Native functions need no line, as there may be no debug information. CPython may
        name a comprehension at the line instead of the function."""
        function = rf"(?<!\w){re.escape(mark['function'])}(?!\w)"
        if mark["line"] is None:
            return re.search(function, line)
        return re.search(rf"{re.escape(mark['file'])}:{mark['line']}(?!\d)", line) and re.search(function + "|<listcomp>|<genexpr>", line)

    def judge_healthy(self):
        for number, line in enumerate(self.texts, 1):
            shares = [float(n) for n in re.findall(r"([\d.]+)%", line)]
            if max(shares, default=100) >= POINTS and any(re.search(pattern, line) for pattern in self.described["false"]):
                return number, "false cause"
        return None, "none named, right"

    def is_right(self):
        return self.verdict in ("named", "none named, right")

    def printed(self):
        """The share nearest to the truth in the line that names the cause"""
        if not self.share or self.verdict != "named":
            return None
        shares = [float(n) for n in re.findall(r"([\d.]+)%", self.texts[self.line - 1])]
        return min(shares, key=lambda s: abs(s - self.share), default=None)

    def shares_text(self):
        if not self.share:
            return "-"
        printed = self.printed()
        return f"{self.share:.0f}%" + ("" if printed is None else f", printed {printed:.0f}%")

    def share_is_right(self):
        printed = self.printed()
        return printed is None or abs(printed - self.share) <= POINTS


# ---- output

def table(rows):
    for name, row in rows.items():
        print(f"{name:20} {row.verdict:18} finding {row.line or '-'}  share {row.shares_text()}")
        for line in row.lines:
            print(f"{'':4}| {line}")


def markdown(rows, skipped, args, summary):
    command = " ".join(filter(None, ("sonde record -d", f"{args.seconds:g}", args.record_args)))
    text = ["| program | planted | verdict | share: truth, printed | the first finding, or the one that names it |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        line = row.lines[(row.line or 1) - 1].split(" Next: `")[0] if row.lines else ""
        text.append(f"| {name} | {row.described['title']} | {row.verdict}{f', finding {row.line}' if row.line else ''} | {row.shares_text()} | "
                    + line.replace("|", "\\|").replace("<", "&lt;") + " |")
    text += [f"| {name} | | skipped: {why} | | |" for name, why in skipped.items()]
    return f"`{command}`{', ten bystanders beside' if args.bystanders else ''}: {summary}\n\n" + "\n".join(text) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--record-args", default="")
    parser.add_argument("--report-args", default="")
    parser.add_argument("--seconds", type=float, default=5)
    for flag in ("bystanders", "busy", "dry", "list", "no-install"):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("keep", "again", "markdown", "table", "lock"):
        parser.add_argument(f"--{option}")
    return parser.parse_args()


def programs(names):
    found = {os.path.basename(p)[:-3]: p for p in sorted(glob.glob(HERE + "/*.py")) if os.path.basename(p) != "run.py"}
    unknown = [n for n in names if n not in found]
    if unknown:
        sys.exit(f"run.py: no program {', '.join(unknown)}: --list prints them")
    return {n: found[n] for n in names or found}


def main():
    args = arguments()
    chosen = programs(args.names)
    if args.list:
        for name, path in chosen.items():
            print(f"{name:20} {incident.manifest(path)[0]['title']}")
        return
    if os.geteuid() and not args.dry and not args.again:
        tap.skip_all("tracing needs root")
    if not args.no_install and not args.again:
        install()
    keep = args.keep or tempfile.mkdtemp(prefix="sonde-incidents-")
    os.makedirs(keep, exist_ok=True)
    rows, skipped = {}, {}
    for name, path in chosen.items():
        try:
            row = rows[name] = report_again(path, args) if args.again else run(path, args, keep)
        except Missing as e:
            skipped[name] = str(e)
            tap.skip(name, e)
            continue
        except (RuntimeError, OSError, ValueError) as e:
            tap.ok(False, f"{name}: could not be judged", e)
            continue
        # a missing cause counts in the sum; a false cause is a failure by itself
        tap.ok(row.verdict != "false cause", f"{name}: {row.verdict}", *row.lines)
    finish(rows, skipped, args)
    if not args.keep:
        shutil.rmtree(keep)
    tap.done()


def finish(rows, skipped, args):
    causes = [r for r in rows.values() if r.described["cause"] is not None]
    named = sum(r.is_right() for r in causes)
    healthy = [r for r in rows.values() if r.described["cause"] is None]
    shares = [r for r in causes if r.printed() is not None]
    summary = (f"{named} of {len(causes)} named, {sum(r.is_right() for r in healthy)} of {len(healthy)} healthy without a false cause, "
               f"{sum(r.share_is_right() for r in shares)} of {len(shares)} shares within {POINTS} points, {len(skipped)} skipped")
    table(rows)
    print(summary)
    if args.markdown:
        write_between_marks(args.markdown, args.table or ("bystanders" if args.bystanders else "alone"), markdown(rows, skipped, args, summary))


if __name__ == "__main__":
    main()

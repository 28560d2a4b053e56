# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the parts of tests/gpu/run share: a budget of time, results as TAP and JSON, and programs that can't hang it."""
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
for place in ("tests/lib", "tests/bench"):
    sys.path.insert(0, os.path.join(ROOT, place))
TEXT_MAX = 1500  # characters of a program's output that are kept
GROUPS = set()  # process groups that are alive


class Late(BaseException):
    """A part has used up its time. Not an Exception: a part that catches those must not catch this."""


class Skip(Exception):
    """The rest of a part can't be done here; the text says why."""


def kill_group(pid, sig):
    try:
        os.killpg(pid, sig)
    except (ProcessLookupError, PermissionError):
        pass


def end_group(child):
    """Kills the group and waits for its end for at most 5 s, because a process may be stuck in the driver."""
    kill_group(child.pid, signal.SIGKILL)
    GROUPS.discard(child.pid)
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        pass


def read_text(path, default=""):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return default


def where_it_hangs(pid, limit):
    """Of a process that did not end: what its threads do, as far as can be said here."""
    found = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            at = f"/proc/{pid}/task/{tid}/"
            state = read_text(at + "stat").rpartition(")")[2].split()[:1]
            found.append(" ".join([read_text(at + "comm").strip(), *state, read_text(at + "wchan"), read_text(at + "syscall").strip()]))
    except OSError:
        pass
    debugger = next(filter(None, map(shutil.which, ("gdb", "cuda-gdb", "/usr/local/cuda/bin/cuda-gdb"))), None)
    if debugger and limit > 3:
        try:
            out = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=min(20, limit)).stdout.decode(errors="replace")
            found += [line for line in out.splitlines() if line.startswith(("#", "Thread"))][:80]
        except (OSError, subprocess.TimeoutExpired):
            pass
    return found[:120]


class Done:
    """A program that has ended, or was ended."""

    def __init__(self, status, late, out, err, seconds, hung):
        self.status, self.late, self.out, self.err, self.seconds, self.hung = status, late, out, err, seconds, hung

    def why(self):
        text = f"took longer than its limit of {self.seconds:.0f} s" if self.late else f"exit status {self.status}"
        return "; ".join([text] + [t.strip()[-TEXT_MAX:] for t in (self.err, self.out) if t.strip()] +
                         (["it hung: " + " | ".join(self.hung)] if self.hung else []))


class Asked:
    """A program that is asked on its standard input and answers with a line."""

    def __init__(self, argv, env, log):
        self.log = open(log, "wb")
        self.child = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                      start_new_session=True)
        GROUPS.add(self.child.pid)
        self.path, self.rest, self.whole = log, b"", 0

    def line(self, limit):
        """The next one; None: it came not in time, or never will."""
        until = time.monotonic() + limit
        while b"\n" not in self.rest:
            ready = select.select([self.child.stdout], [], [], max(0, until - time.monotonic()))[0]
            data = os.read(self.child.stdout.fileno(), 65536) if ready else b""
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace")

    def ask(self, question, limit):
        try:
            self.child.stdin.write(question.encode() + b"\n")
            self.child.stdin.flush()
        except OSError:
            return None
        return self.line(limit)

    def number(self, question, limit):
        """Seconds; `whole`: with what belongs to it before and after, where the program reports that too."""
        answer = self.ask(question, limit)
        try:
            words = [float(word) for word in answer.split()]
            self.whole = words[-1]
            return words[0]
        except (AttributeError, IndexError, ValueError):
            raise Skip(f"no answer to '{question}' within {limit} s: {answer} {read_text(self.path)[-TEXT_MAX:]}") from None

    def end(self, limit=10):
        try:
            self.child.stdin.close()
            self.child.wait(limit)
        except (OSError, subprocess.TimeoutExpired):
            pass
        end_group(self.child)
        self.log.close()


class Run:
    def __init__(self, out, minutes, doubles, keep=""):
        self.out, self.doubles, self.keep = out, doubles, keep
        self.began = time.monotonic()
        self.deadline = self.began + 60 * minutes - min(10, 6 * minutes)
        self.part_deadline = self.deadline
        self.tmp = os.path.abspath(keep) if keep else tempfile.mkdtemp(prefix="sonde-gpu-")
        os.makedirs(self.tmp, exist_ok=True)
        self.part, self.count, self.serial = "", 0, 0
        self.result = {"format": 1, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "doubles": doubles,
                       "complete": False, "minutes": minutes, "passed": 0, "failed": 0, "skipped": 0, "machine": {},
                       "figures": {}, "parts": {}, "checks": []}

    def left(self):
        """Seconds, of the part that is running or of all."""
        return min(self.deadline, self.part_deadline) - time.monotonic()

    def need(self, seconds, what):
        if self.left() < seconds:
            raise Skip(f"{what}: {max(0, self.left()):.0f} s are left, and it needs {seconds}")

    def save(self):
        """Whole at any moment: what is there by now is kept if this is ended."""
        self.result["seconds"] = round(time.monotonic() - self.began, 1)
        with open(self.out + ".tmp", "w") as f:
            json.dump(self.result, f, indent=1, default=str)
            f.write("\n")
        os.replace(self.out + ".tmp", self.out)

    def _check(self, state, name, why, figures):
        self.count += 1
        self.result[state] += 1
        check = {"part": self.part, "name": name, "result": state}
        if why:
            check["why"] = why
        if figures:
            check["figures"] = figures
        self.result["checks"].append(check)
        self.save()

    def ok(self, passed, name, *why, **figures):
        """A check. why: shown if it failed; figures: kept in any case."""
        text = "; ".join(str(w)[:TEXT_MAX] for w in why) if not passed else ""
        self._check("passed" if passed else "failed", name, text, figures)
        print(f"{'ok' if passed else 'not ok'} {self.count} - {self.part}: {name}", flush=True)
        if figures:
            print("# " + ", ".join(f"{k} {v}" for k, v in figures.items())[:TEXT_MAX], flush=True)
        if text:
            print("# " + text.replace("\n", "\n# "), flush=True)
        return passed

    def skip(self, name, why):
        why = " ".join(str(why).split())[:TEXT_MAX]
        self._check("skipped", name, why, None)
        print(f"ok {self.count} - {self.part}: {name} # SKIP {why}", flush=True)

    def say(self, key, value):
        """A figure, or a result in words, that is neither right nor wrong."""
        self.result["figures"].setdefault(self.part, {})[key] = value
        self.save()
        print(f"# {self.part}: {key}: {str(value)[:TEXT_MAX]}", flush=True)

    def file(self, name):
        self.serial += 1
        return os.path.join(self.tmp, f"{self.serial}-{name}")

    def command(self, argv, limit, env=None, cwd=ROOT):
        """Runs it for `limit` seconds at most, and no longer than there is time."""
        out, err, began = self.file("out"), self.file("err"), time.monotonic()
        limit = min(limit, max(1, self.left() - 3))
        with open(out, "wb") as o, open(err, "wb") as e:
            try:
                child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=env, cwd=cwd,
                                         start_new_session=True)
            except OSError as failed:
                return Done(127, False, "", str(failed), 0, [])
            GROUPS.add(child.pid)
            late, hung = False, []
            try:
                child.wait(limit)
            except subprocess.TimeoutExpired:
                late, hung = True, where_it_hangs(child.pid, self.left() - 1)
            finally:
                end_group(child)
        status = child.returncode if child.returncode is not None and not late else -1
        return Done(status, late, read_text(out), read_text(err), time.monotonic() - began, hung)

    def run_part(self, name, function, limit, needs=1):
        """A part with a limit of its own: what it found until then is kept."""
        self.part, began = name, time.monotonic()
        self.part_deadline = self.deadline
        state = "done"
        if self.left() < needs:
            self.skip("all of it", f"{max(0, self.left()):.0f} s are left, and it needs {needs}")
            state = "no time"
        else:
            limit = max(1, min(limit, self.left()))
            self.part_deadline = began + limit
            signal.setitimer(signal.ITIMER_REAL, limit)
            try:
                function(self)
            except Skip as why:
                self.skip("the rest of it", why)
                state = "skipped"
            except Late:
                self.ok(False, f"ended within {limit:.0f} s")
                state = "late"
            except Exception as error:  # a part that is wrong must not take the others with it
                import traceback
                self.ok(False, f"goes through: {type(error).__name__}: {error}", traceback.format_exc()[-TEXT_MAX:])
                state = "broken"
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                end_all()
        self.result["parts"][name] = {"state": state, "seconds": round(time.monotonic() - began, 1), "limit": round(limit, 1)}
        self.save()

    def close(self):
        self.result["complete"] = True
        self.save()
        if not self.keep:
            shutil.rmtree(self.tmp, ignore_errors=True)
        r = self.result
        print(f"1..{self.count}")
        print(f"# all of it in {r['seconds']:.0f} s: {self.out}")
        print(f"{r['passed']} passed, {r['failed']} failed, {r['skipped']} skipped", flush=True)
        return 1 if r["failed"] else 0


def end_all():
    """What a part has left behind."""
    for pid in list(GROUPS):
        kill_group(pid, signal.SIGKILL)
        GROUPS.discard(pid)

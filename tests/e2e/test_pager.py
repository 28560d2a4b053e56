#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""What a terminal gets: the pager for output that is longer than the screen, its rights, colours, and tables that fit. Everything runs in
a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time

from account import Account
from tap import done, ok, skip

SONDE = os.environ["SONDE"]
PAGED = "echo PAGED; cat"
COLORS = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A command in a pseudo-terminal of its own, which is its controlling one"""

    def __init__(self, argv, rows=24, columns=80, stdout=None, **env):
        self.text = b""
        base = {k: v for k, v in os.environ.items() if k not in ("PAGER", "SONDE_PAGER", "LESS", "NO_COLOR", "LESSSECURE", "SUDO_UID", "SUDO_GID")}
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            if stdout is not None:
                os.dup2(stdout, 1)
            os.execvpe(argv[0], argv, {**base, "TERM": "xterm", **env})

    def read(self, until=None, seconds=60):
        """Reads until the end, or until a text has arrived; false: it did not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until and until in self.text:
                return True
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return until is None
            self.text += data
        return False

    def write(self, keys):
        os.write(self.fd, keys)

    def wait(self):
        """What was printed, and the exit status"""
        self.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.text.decode("utf-8", "replace").replace("\r\n", "\n"), status


def run(*words, **more):
    return Terminal([SONDE, *words], **more).wait()


def piped(*words):
    return subprocess.run([SONDE, *words], capture_output=True, text=True, check=True).stdout


def plain(text):
    return COLORS.sub("", text)


def check_when(trace):
    wide = {"columns": 500}
    for words in (("report", trace), ("info", trace), ("list", "events"), ("report", trace, "sched", "--format", "json")):
        wide["columns"] = 120 if words[0] == "report" else 500  # as wide as in a pipe
        text, status = run(*words, rows=5, SONDE_PAGER=PAGED, **wide)
        ok(status == 0 and text.startswith("PAGED\n") and plain(text[6:]) == piped(*words), " ".join(words[:1] + words[2:]) + " is paged", text[:300])
        text, status = run(*words, "--no-pager", rows=5, SONDE_PAGER=PAGED, **wide)
        ok(status == 0 and plain(text) == piped(*words), "and not with --no-pager", text[:300])
    wide["columns"] = 500
    text, status = run("list", "events", rows=5, PAGER=PAGED, **wide)
    ok(text.startswith("PAGED\n"), "PAGER names it")
    for env in ({"SONDE_PAGER": "", "PAGER": PAGED}, {"SONDE_PAGER": "cat", "PAGER": PAGED}, {"SONDE_PAGER": PAGED, "TERM": "dumb"}):
        text, status = run("list", "events", rows=5, **wide, **env)
        ok(status == 0 and "PAGED" not in text, f"none with {env}")
    text, status = run("list", "events", rows=5, SONDE_PAGER="/nonexistent/pager", **wide)
    ok(status == 0 and plain(text) == piped("list", "events"), "a pager that is not there costs nothing", text[:300])
    to_read, to_write = os.pipe()
    text, status = run("report", trace, rows=5, stdout=to_write, SONDE_PAGER=PAGED)
    os.close(to_write)
    with os.fdopen(to_read) as f:
        ok(status == 0 and f.read() == piped("report", trace) and not text, "a pipe gets no pager and no colours", text)
    text, status = run("report", "/nonexistent", rows=5, SONDE_PAGER=PAGED)
    ok(status == 1 and "no such file" in text, "an error is printed, and its status stays", text)


def check_leaving(trace):
    text, status = run("list", "events", rows=5, columns=500, SONDE_PAGER="head -n 1")
    ok(status == 0 and text.count("\n") == 1, "a pager that ends early is no error", text[:300])
    t = Terminal([SONDE, "report", trace], rows=5, columns=120, SONDE_PAGER="trap '' INT; head -c 1; echo READY; read x </dev/tty; cat")
    ok(t.read(b"READY"), "the pager has the terminal")
    t.write(b"\x03")
    t.write(b"\n")
    text, status = t.wait()
    ok(status == 0 and plain(text).endswith(piped("report", trace)), "an interrupt is the pager's: sonde waits for its end", text[-300:])


def check_less():
    if not shutil.which("less"):
        skip("less", "it is not installed")
        return
    text, status = run("list", "fields", rows=10000, columns=500)
    ok(status == 0 and piped("list", "fields").splitlines()[-2].split()[0] in text, "less ends at once if all fits on the screen", text[:300])
    t = Terminal([SONDE, "list", "fields"], rows=10, columns=200)
    ok(t.read(b":"), "less shows the first screen", t.text)
    t.write(b"q")
    text, status = t.wait()
    whole = piped("list", "fields")
    ok(status == 0 and whole.splitlines()[1][:20].split()[0] in text and whole.splitlines()[-2] not in text, "and q ends it", text[-300:])


def check_rights(account):
    show = "echo uid=$(id -u) secure=$LESSSECURE; cat > /dev/null"
    text, _ = run("list", "events", rows=5, SONDE_PAGER=show)
    ok("uid=0 secure=1" in text, "root's pager can't run programs", text)
    text, _ = run("list", "events", rows=5, SONDE_PAGER=show, SUDO_UID=str(account.uid), SUDO_GID=str(account.uid))
    ok(f"uid={account.uid} secure=1" in text, "through sudo it runs as the user", text)
    text, _ = Terminal(account.command(SONDE, "list", "events"), rows=5, SONDE_PAGER=show).wait()
    ok(f"uid={account.uid} secure=\n" in text, "a user's own is the user's", text)


def check_colors(trace):
    text, _ = run("report", trace, "--no-pager", rows=1000)
    ok("\x1b[1m" in text, "headings are bold on a terminal")
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        text, _ = run("report", trace, "--no-pager", rows=1000, **env)
        ok("\x1b" not in text, f"and not with {env}")
    text, _ = run("report", trace, rows=5, SONDE_PAGER=PAGED)
    ok("\x1b[1m" in text, "they are in the pager, too")


def rows_of(text):
    """Rows of tables: what is below is sentences, which the terminal wraps"""
    return [row for table in text.split("\n\n")[:-1] for row in table.splitlines()[1:]]


def check_width(trace):
    number = re.compile(r"(?<![\w./-])[0-9][0-9,.]*(?![\w./-])")
    for words, columns in ((("list", "events"), 80), (("report", trace, "processes"), 62), (("info", trace), 80)):
        whole = rows_of(piped(*words))
        text, _ = run(*words, "--no-pager", rows=10000, columns=columns)
        rows = rows_of(plain(text))
        long = [row for row in whole if len(row) > columns]
        ok(long and sum(".." in row for row in rows) > sum(".." in row for row in whole), f"{words[0]}: long texts are shortened", rows[:5])
        if words[0] != "info":  # one of whose tables is wider with all texts at their shortest
            ok(max(map(len, rows)) <= columns, f"{words[0]}: no row is longer than the line", max(map(len, rows)))
        first = [row.split()[0] for row in whole if row.split()]
        ok(all(any(row.split()[:1] == [n] for row in rows) for n in first if number.fullmatch(n)), f"{words[0]}: numbers are whole")
    ok("proc" in piped("list", "events") and "\x1b" not in piped("report", trace), "in a pipe there is no colour")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        golden, trace = os.path.join(os.environ["ROOT"], "tests", "golden"), os.path.join(tmp, "run.sonde")
        subprocess.run([os.path.join(os.environ["B"], "tests", "golden", "make_trace"), f"{golden}/schema.json", f"{golden}/run.events", trace],
                       check=True)
        check_when(trace)
        check_leaving(trace)
        check_less()
        with Account() as account:
            if account.why:
                skip("rights of the pager", account.why)
            else:
                check_rights(account)
        check_colors(trace)
        check_width(trace)
    done()


main()

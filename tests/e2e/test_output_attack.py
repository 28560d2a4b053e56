#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Another user places FIFOs and links where root's sonde writes: sonde neither follows them nor hangs."""
import os
import resource
import shutil
import signal
import subprocess

from account import run_with_account
from tap import ok

SONDE, ROOT = os.environ["SONDE"], os.environ["ROOT"]
TRACE = os.path.join(ROOT, "tests", "golden", "v1.0-small.sonde")
SECRET = b"root's\n" * 100
SWAPS = 60


def sonde(*words, timeout=60, **kw):
    """(exit status, stdout, stderr), or None if it hung"""
    try:
        r = subprocess.run([SONDE, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, **kw)
    except subprocess.TimeoutExpired:
        return None, b"", b"it hung"
    return r.returncode, r.stdout, r.stderr


def export(to, path, *words, **kw):
    return sonde("export", TRACE, "--to", to, *words, "-o", path, **kw)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def plant(account, *words):
    subprocess.run(account.command(*words), check=True)


def sticky(tmp):
    folder = os.path.join(tmp, "sticky")
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    return folder


def fifos(account, folder):
    """Another user's FIFO in a folder like /tmp: sonde does not wait for its reader, and its reader gets no data."""
    fifo = os.path.join(folder, "fifo")
    plant(account, "mkfifo", "-m", "666", fifo)
    r = export("text", fifo, "-f")
    ok(r[0] == 1 and b"is a FIFO" in r[2] and b"-o /dev/stdout >" in r[2], "a FIFO without a reader is refused", r)
    reader = subprocess.Popen(account.command("cat", fifo), stdout=subprocess.PIPE)
    r = export("text", fifo, "-f")
    live = sonde("record", "-t", "proc", "-d", "0.2", "-f", "-o", fifo)
    # ends the reader if it still waits
    if reader.poll() is None:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    got = reader.communicate(timeout=60)[0]
    ok(r[0] == 1 and not got, "a FIFO with a reader: the reader gets no data", r, got[:200])
    ok(live[0] == 1 or b"is a FIFO" in live[2], "record refuses a FIFO too", live)


def links(account, folder, roots):
    """Another user's links in place of the file and of a folder on its path."""
    link, there, own = (os.path.join(folder, n) for n in ("link", "there", "own"))
    plant(account, "ln", "-s", roots, link)
    plant(account, "ln", "-s", os.path.dirname(roots), there)
    os.symlink(os.path.dirname(roots), own)
    for to in ("text", "sqlite"):
        r = export(to, link, "-f")
        ok(r[0] == 0 and not os.path.islink(link) and content(roots) == SECRET, f"{to}: a link is replaced, not followed", r)
        os.unlink(link)
        plant(account, "ln", "-s", roots, link)
        new = os.path.join(there, "new-" + to)
        r = export(to, new)
        ok(r[0] == 1 and b"'there'" in r[2] and b"name the folder itself" in r[2] and not os.path.exists(new),
           f"{to}: a path through another user's link is refused", r)
        r = export(to, os.path.join(own, "own-" + to))
        ok(r[0] == 0 and os.path.exists(os.path.join(own, "own-" + to)), f"{to}: a path through one's own link is followed", r)
    ok(sorted(n for n in os.listdir(folder) if n.startswith(".")) == [], "no temporary file is left", os.listdir(folder))


SWAPPER = """
import os, sys
fifo, target = sys.argv[1], sys.argv[2]
spare, link = fifo + ".f", fifo + ".l"
while True:
    for make in (lambda: os.mkfifo(spare), lambda: os.symlink(target, link)):
        try:
            make()
        except FileExistsError:
            pass
    for name in (spare, link):
        try:
            os.rename(name, fifo)
        except OSError:
            pass
"""


def swapped(account, tmp, roots):
    """In the other user's folder, a FIFO is replaced by a link to root's file and back without pause."""
    folder = os.path.join(tmp, "theirs")
    os.mkdir(folder)
    os.chown(folder, account.uid, account.gid)
    path = os.path.join(folder, "out")
    swapper = subprocess.Popen(account.command("/usr/bin/python3", "-c", SWAPPER, path, roots))
    hung = overwritten = 0
    for i in range(SWAPS):
        r = export("sqlite" if i % 4 == 3 else "text", path, "-f")
        hung += r[0] is None
        if content(roots) != SECRET:
            overwritten += 1
            with open(roots, "wb") as f:
                f.write(SECRET)
        if hung >= 3:
            break
    swapper.kill()
    swapper.wait()
    ok(not overwritten, "swapped while sonde opens it: root's file is unchanged", f"{overwritten} times overwritten")
    ok(not hung, "swapped while sonde opens it: nothing hangs", hung)


def kept(tmp):
    """Safe uses still work."""
    whole = export("text", os.path.join(tmp, "whole"))
    text = content(os.path.join(tmp, "whole"))
    ok(whole[0] == 0 and text and os.stat(os.path.join(tmp, "whole")).st_mode & 0o777 == 0o600, "a new file is accessible to its owner only", whole)
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"):
        r = export("text", path)
        ok(r[0] == 0 and r[1] == text, f"-o {path}", r[0], r[2])
    r, link = export("text", "/dev/stdout", "-f"), os.path.islink("/dev/stdout")
    ok(r[1] == text and link, "-f -o /dev/stdout does not replace /dev/stdout", r)
    if not link:
        os.unlink("/dev/stdout")
        os.symlink("/proc/self/fd/1", "/dev/stdout")
    r = export("text", "/dev/null", "-f")
    ok(r[0] == 0, "-f -o /dev/null", r)
    without = {**os.environ, "SONDE_TEST": "no-tmpfile"}
    for words, status in (((), 1), (("-f",), 0)):
        for name, expected in (("whole", status), ("whole" + str(status), 0)):
            path = os.path.join(tmp, name)
            r = export("text", path, *words, env=without)
            ok(r[0] == expected and content(path) == text, f"a file system without O_TMPFILE, {name} {' '.join(words)}", r)
    ok(not [n for n in os.listdir(tmp) if n.startswith(".")], "no temporary file is left without O_TMPFILE", os.listdir(tmp))
    with open(os.path.join(tmp, "piped"), "wb") as f:
        r = subprocess.run([SONDE, "record", "-t", "proc", "-d", "0.2", "-o", "/dev/stdout"], stdout=subprocess.PIPE, timeout=60,
                           stderr=subprocess.PIPE)
        f.write(r.stdout)
    i = sonde("info", os.path.join(tmp, "piped"))
    ok(r.returncode == 0 and i[0] == 0, "record -o /dev/stdout into a pipe", r.stderr, i)


def by_user(account, tmp):
    """An unprivileged user exports to a folder of their own. The process that reads the trace can't create files; its parent does."""
    folder, program = os.path.join(tmp, "own"), os.path.join(tmp, "sonde")
    os.mkdir(folder)
    os.chown(folder, account.uid, account.gid)
    shutil.copy(SONDE, program)
    trace = shutil.copy(TRACE, os.path.join(tmp, "readable.sonde"))
    os.chmod(trace, 0o644)
    for to in ("text", "perfetto", "sqlite"):
        for switch in ("", "no-tmpfile"):
            path = os.path.join(folder, to)
            r = subprocess.run(account.command(program, "export", trace, "--to", to, "-f", "-o", path), capture_output=True,
                               timeout=60, env={**os.environ, "SONDE_TEST": switch})
            ok(r.returncode == 0 and os.path.getsize(path) > 100, f"by a user: export --to {to} {switch}", r)
    r = subprocess.run(account.command(program, "report", trace), capture_output=True, timeout=60)
    ok(r.returncode == 0 and r.stdout, "by a user: report", r)
    ok(sorted(os.listdir(folder)) == ["perfetto", "sqlite", "text"], "by a user: no other file is left", os.listdir(folder))


def default_xfsz():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def ends(tmp):
    r = export("text", os.path.join(tmp, "short"), preexec_fn=default_xfsz)
    ok(r[0] == 1 and b"File too large" in r[2] and not os.path.exists(os.path.join(tmp, "short")),
       "a file size limit is a message, not a signal", r)
    path = os.path.join(tmp, "removed")
    child = subprocess.Popen([SONDE, "record", "-t", "proc", "-o", path], stderr=subprocess.PIPE, text=True)
    line = ""
    while "tracing into" not in line and child.poll() is None:
        line = child.stderr.readline()
    os.unlink(path)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=60)[1]
    ok(child.returncode == 1 and "was removed while it was written" in err, "a trace that was removed while it was written is an error",
       child.returncode, err)


def attack(account, tmp):
    roots = os.path.join(tmp, "roots", "file")
    os.mkdir(os.path.dirname(roots))
    with open(roots, "wb") as f:
        f.write(SECRET)
    os.chmod(roots, 0o600)
    folder = sticky(tmp)
    fifos(account, folder)
    links(account, folder, roots)
    swapped(account, tmp, roots)
    kept(tmp)
    by_user(account, tmp)
    ends(tmp)


run_with_account(attack)

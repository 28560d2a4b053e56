#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""A user who maps new files without end takes a share of a CPU from sonde, and no other user's files are left out for it.

With SONDE_TEST=fixed-shares each examination costs a tenth of what a user may have, and nothing is added: so of a user's new files the
first ten are probed, each further one is counted, and how fast this machine is doesn't matter. With growing-shares one
examination is added each time that sonde looks: then all are probed that stay mapped.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from account import Account, let_pass
from sonde_trace import Trace
from tap import done, ok, skip_all

B, SONDE, TMP = (os.environ[n] for n in ("B", "SONDE", "TMPDIR"))
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
LOSS_SHARE = 16
FILES, EXAMINED = 50, 10
# maps copies of a library as code, says so, and keeps them until its input ends
MAPS = """
import mmap, os, sys
kept, text = [], open(sys.argv[1], 'rb').read()
for i in range(int(sys.argv[3])):
    path = f'{sys.argv[2]}/lib{os.getpid()}-{i}.so'
    with open(path, 'wb') as f:
        f.write(text)
    with open(path, 'rb') as f:
        kept.append(mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print('mapped', flush=True)
sys.stdin.read()
"""


def record(path, switch):
    child = subprocess.Popen([SONDE, "record", "-f", "-o", path, "-t", "proc,cuda"], stderr=subprocess.PIPE, universal_newlines=True,
                             env=dict(os.environ, SONDE_TEST=switch))
    for line in child.stderr:
        if "tracing into" in line:
            return child
    raise RuntimeError(f"sonde did not begin: {child.wait()}")


def stop(child):
    child.send_signal(signal.SIGINT)
    return child.communicate(timeout=60)[1]


def mapper(uid, n):
    folder = f"{TMP}/users/{uid}"
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.chown(folder, uid, -1)
    child = subprocess.Popen([sys.executable, "-I", "-c", MAPS, FAKE, folder, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: os.setuid(uid))
    child.stdout.readline()
    return child, folder


def end(child):
    child.stdin.close()
    child.wait()


def probed(path, folder):
    try:
        t = Trace(path)
        texts = {e["string"]: e["text"] for e in t.events("meta_string")}
        return len({e["object"] for e in t.events("meta_object") if texts.get(e["path"], "").startswith(folder) and e["sites"]})
    except (OSError, EOFError, ValueError):
        return 0


def wait_for(what, seconds=60):
    until = time.monotonic() + seconds
    while not what() and time.monotonic() < until:
        time.sleep(0.3)


def test_fixed(first, second):
    path = f"{TMP}/fixed.sonde"
    # the interpreter's own files are known then, and charged to no process
    warm, _ = mapper(os.getuid(), 0)
    child = record(path, "fixed-shares")
    users = [mapper(first, FILES), mapper(second, 5)]
    wait_for(lambda: probed(path, users[1][1]) == 5)
    time.sleep(1.5)
    err = stop(child)
    for user, _ in users:
        end(user)
    end(warm)
    ok(probed(path, users[0][1]) == EXAMINED, f"of {FILES} new files of one user {EXAMINED} are examined", probed(path, users[0][1]), err)
    ok(probed(path, users[1][1]) == 5, "all new files of another user are", probed(path, users[1][1]), err)
    # other programs of the machine may have left out files of their own
    lost = [e["count"] for e in Trace(path).events("meta_loss") if e["reason"] == LOSS_SHARE and e["pid"] == users[0][0].pid]
    ok(sum(lost) == FILES - EXAMINED, "each of the others is counted as a loss, with the process", lost, err)
    ok(child.returncode == 3 and len(re.findall(f"processes of user {first} map new files with code faster", err)) == 1 and
       f"user {second}" not in err, "one line names the user", child.returncode, err)
    said = re.search(r"lost core: (\d+) mappings .*more than that user's share", err)
    ok(said and int(said[1]) >= FILES - EXAMINED, "a line at the end has the number", err)


def test_growing(first):
    path = f"{TMP}/growing.sonde"
    child = record(path, "growing-shares")
    user, folder = mapper(first, FILES)
    wait_for(lambda: probed(path, folder) == FILES)
    err = stop(child)
    end(user)
    ok(probed(path, folder) == FILES, "what stays mapped is examined when there is something left again", probed(path, folder), err)


def main():
    if not os.path.exists(FAKE):
        skip_all("the library of the test is not built")
    os.mkdir(f"{TMP}/users")
    let_pass(f"{TMP}/users")
    with Account("a") as a, Account("b") as b:
        if a.why or b.why:
            skip_all(a.why or b.why)
        test_fixed(a.uid, b.uid)
        test_growing(a.uid)
    done()


main()

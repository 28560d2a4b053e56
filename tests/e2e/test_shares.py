#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""A user who maps new files without end gets only a share of sonde's CPU time, and no other user's files are left out.

With SONDE_TEST=fixed-shares each examination costs a tenth of a user's budget, which does not grow: the first ten of a user's new
files are probed and each further one is counted, regardless of the machine's speed. With growing-shares the budget grows by one
examination per scan, so that all files that stay mapped are probed.
"""
import os
import re
import subprocess
import sys

from account import Account, let_pass
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

B, SONDE, TMP = (os.environ[n] for n in ("B", "SONDE", "TMPDIR"))
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
LOSS_SHARE = 16
FILES, EXAMINED = 50, 10
# maps copies of a library as code, prints a line, and keeps them mapped until its input ends
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


def left_out(trace, pid):
    return [e["count"] for e in trace.events("meta_loss") if e["reason"] == LOSS_SHARE and e["pid"] == pid]


def test_fixed(first, second):
    path = f"{TMP}/fixed.sonde"
    # by then the interpreter's own files are known, so that no process is charged for them
    warm, _ = mapper(os.getuid(), 0)
    sonde = Sonde(path, "-t", "proc,cuda", mode="fixed-shares")
    users = [mapper(first, FILES), mapper(second, 5)]
    sonde.wait_trace(lambda t: t.probed(users[0][1]) >= EXAMINED and t.probed(users[1][1]) == 5)
    # until each further file of the first user is counted as a loss
    sonde.wait_trace(lambda t: sum(left_out(t, users[0][0].pid)) >= FILES - EXAMINED)
    status, err = sonde.end(), sonde.messages
    for user, _ in users:
        end(user)
    end(warm)
    examined = [Trace(path).probed(folder) for _, folder in users]
    ok(examined[0] == EXAMINED, f"of {FILES} new files of one user {EXAMINED} are examined", examined, err)
    ok(examined[1] == 5, "all new files of another user are examined", examined, err)
    # files of the machine's other programs may have been left out too
    lost = left_out(Trace(path), users[0][0].pid)
    ok(sum(lost) == FILES - EXAMINED, "each further file is counted as a loss, with its process", lost, err)
    ok(status == 3 and len(re.findall(f"processes of user {first} map new files with code faster", err)) == 1 and
       f"user {second}" not in err, "one message names the user", status, err)
    said = re.search(r"lost core: (\d+) mappings .*more than that user's share", err)
    ok(said and int(said[1]) >= FILES - EXAMINED, "a message at the end has the number of files", err)


def test_growing(first):
    path = f"{TMP}/growing.sonde"
    sonde = Sonde(path, "-t", "proc,cuda", mode="growing-shares")
    user, folder = mapper(first, FILES)
    sonde.wait_probed(folder, FILES)
    sonde.end()
    end(user)
    examined = Trace(path).probed(folder)
    ok(examined == FILES, "files that stay mapped are examined when the budget has grown", examined, sonde.messages)


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

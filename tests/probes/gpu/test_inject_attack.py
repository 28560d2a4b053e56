#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""`sonde inject` by root into another user's process with a forged C library: root's files must not change."""
import os

from account import run_with_account
from inject_lib import BUILD, Target, inject
from tap import ok

ATTACKER = os.path.join(BUILD, "tests", "probes", "gpu", "inject_attacker")
SECRET = b"root's\n" * 100


def attack(account, kind, path=None):
    """(exit status, output) of the injection, or None if the target did not start"""
    t = Target(account.command(ATTACKER, kind, *([path] if path else [])))
    try:
        if not t.ready:
            return None
        r = inject(t.pid)
        return r.returncode, r.stdout + r.stderr, os.path.exists(f"/proc/{t.pid}/mem")
    finally:
        t.kill()


def content(path):
    with open(path, "rb") as f:
        return f.read()


def attacks(account, tmp):
    roots, own = os.path.join(tmp, "roots"), os.path.join(tmp, "own")
    for path in (roots, own):
        with open(path, "wb") as f:
            f.write(SECRET)
        os.chmod(path, 0o600)
    os.chown(own, account.uid, account.gid)
    for kind, path in (("path", roots), ("file", own), ("memfd", None)):
        r = attack(account, kind, path)
        ok(r and r[0] == 1 and r[2] and "nothing changed: its memory" not in r[1], f"{kind}: refused, and the process continues", r)
        ok(content(roots) == SECRET and os.stat(roots).st_mode & 0o777 == 0o600, f"{kind}: root's file is unchanged",
           content(roots)[:80])
    r = attack(account, "handle")
    ok(r and r[0] == 1 and "the library is not mapped" in r[1], "handle: a library that the process does not map counts as not loaded", r)


run_with_account(attacks)

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A second account of this machine, made for a test and removed after it; and how such a test reports."""
import os
import pwd
import shutil
import subprocess
import sys
import tempfile

count = failed = 0


def ok(passed, name, *why):
    global count, failed
    count += 1
    failed += not passed
    print(f"{'ok' if passed else 'not ok'} {count} - {name}", flush=True)
    for w in () if passed else why:
        print("# " + str(w)[:1500].replace("\n", "\n# "), flush=True)


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def plan():
    print(f"1..{count}")


def skip_all(why):
    print(f"ok 1 - everything # SKIP {why}\n1..1")


def run_with_account(test):
    """Calls test(account, folder), where the account may enter the folder, and ends the program; without an account it skips all."""
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-attack-") as tmp:
        if account.why:
            skip_all(account.why)
            sys.exit(0)
        let_pass(tmp)
        test(account, tmp)
    plan()
    sys.exit(failed > 0)


class Account:
    """`with Account() as a`: a.why says why none can be made, else a.name, a.uid and a.gid."""

    def __enter__(self):
        self.name, self.why, self.uid, self.gid = f"sonde-t{os.getpid()}", "", None, None
        if os.geteuid():
            self.why = "a second account needs root"
        elif not (shutil.which("useradd") and shutil.which("userdel") and shutil.which("setpriv")):
            self.why = "useradd, userdel or setpriv is not installed"
        else:
            r = subprocess.run(["useradd", "--no-create-home", "--user-group", "--shell", "/bin/sh", self.name], capture_output=True,
                               text=True)
            if r.returncode:
                self.why = "useradd: " + " ".join(r.stderr.split())
            else:
                self.uid, self.gid = pwd.getpwnam(self.name)[2:4]
        return self

    def __exit__(self, *args):
        if self.uid is not None:
            subprocess.run(["userdel", self.name], capture_output=True, check=False)

    def command(self, *words):
        """The words as a command that this account runs."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", *words]


def let_pass(path):
    """Other users may enter the folder and read what they may in it; those above it, of a test run, too."""
    while os.path.dirname(path) != "/":
        mode = os.stat(path).st_mode & 0o7777
        if not mode & 0o001:
            os.chmod(path, mode | 0o055)
        path = os.path.dirname(path)


def sondes_account():
    """The uid that sonde takes on instead of root's: its account's, or else the number of user/sandbox/privileges.h."""
    try:
        return pwd.getpwnam("sonde").pw_uid
    except KeyError:
        return 1936682596

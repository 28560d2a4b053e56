# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A second account of this machine, made for a test and removed after it."""
import os
import pwd
import shutil
import subprocess
import tempfile

from tap import done, skip_all


def run_with_account(test):
    """Calls test(account, folder), where the account may enter the folder, and ends the program; without an account it skips all."""
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-attack-") as tmp:
        if account.why:
            skip_all(account.why)
        let_pass(tmp)
        test(account, tmp)
    done()


class Account:
    """`with Account() as a`: a.why says why none can be made, else a.name, a.uid and a.gid. end: of its name, where a test makes two."""

    def __init__(self, end=""):
        self.end = end

    def __enter__(self):
        self.name, self.why, self.uid, self.gid = f"sonde-t{os.getpid()}{self.end}", "", None, None
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

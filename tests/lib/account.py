# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A second user account, created for a test and deleted after it."""
import os
import pwd
import shutil
import subprocess
import tempfile

from tap import done, skip_all


def run_with_account(test):
    """Calls test(account, folder) with a folder that the account may enter, then ends the program. Skips if no account can be made."""
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-attack-") as tmp:
        if account.why:
            skip_all(account.why)
        let_pass(tmp)
        test(account, tmp)
    done()


def first_subuid(name):
    """As useradd(8) has chosen it, if it gives subordinate ids"""
    with open("/etc/subuid", "a+", encoding="ascii") as f:
        f.seek(0)
        for line in f:
            if line.startswith(name + ":"):
                return int(line.split(":")[1])
        print(f"{name}:{1 << 30}:65536", file=f)
    return 1 << 30


class Account:
    """
    `with Account() as a` sets a.name, a.uid, a.gid and a.subuids, the first of 65536 subordinate ids, or a.why if none can be made. `end`
    is a suffix of the name, for a second account.
    """

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
                self.subuids = first_subuid(self.name)
        return self

    def __exit__(self, *args):
        if self.uid is not None:
            subprocess.run(["userdel", self.name], capture_output=True, check=False)

    def command(self, *words):
        """The argument vector that runs these words as this account."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", *words]


def let_pass(path):
    """Lets other users enter the folder and each folder above it."""
    while os.path.dirname(path) != "/":
        mode = os.stat(path).st_mode & 0o7777
        if not mode & 0o001:
            os.chmod(path, mode | 0o055)
        path = os.path.dirname(path)


DEFAULT_ACCOUNT = 1936682596  # UID_WORKER in user/util/account.h


def sondes_account():
    """The uid that sonde switches to when root runs it: its account's, or the default."""
    try:
        return pwd.getpwnam("sonde").pw_uid
    except KeyError:
        return DEFAULT_ACCOUNT

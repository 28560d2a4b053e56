#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A user's home with an absurd number of library folders, made by links: a recording still starts, and reports what it left out."""
import os
import resource
import shutil
import subprocess
import tempfile

from account import Account
from tap import done, note, ok, skip_all

SONDE = os.environ["SONDE"]
LINKS = 60  # links at each of three levels of the path, which make 216,000 folders
LIBRARIES = "python3{}/site-packages/nvidia"


def plant(home):
    """HOME/*/lib/python3*/site-packages/nvidia/*/lib"""
    python = os.path.join(home, "env", "lib", LIBRARIES.format(""))
    os.makedirs(os.path.join(python, "package", "lib"))
    with open(os.path.join(python, "package", "lib", "libcudart.so.12"), "wb") as f:
        f.write(b"no library")
    for i in range(LINKS):
        os.symlink("env", os.path.join(home, f"env{i}"))
        os.symlink("python3", os.path.join(home, "env", "lib", f"python3{i}"))
        os.symlink("package", os.path.join(python, f"package{i}"))


def record(tmp):
    """(exit status, messages, largest memory of a process in MB)"""
    r = subprocess.run([SONDE, "record", "-t", "cuda", "-d", "1", "-f", "-o", os.path.join(tmp, "trace")], capture_output=True, text=True)
    return r.returncode, r.stderr, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024


def main():
    with Account() as account, tempfile.TemporaryDirectory() as tmp:
        home = f"/home/{account.name}"
        why = account.why or ("" if os.path.isdir("/home") and not os.path.exists(home) else "there is no /home for it")
        if why:
            skip_all(why)
        os.mkdir(home)
        try:
            plant(home)
            subprocess.run(["chown", "-hR", f"{account.uid}:{account.gid}", home], check=True)
            os.chmod(home, 0o755)
            status, text, memory = record(tmp)
            good = not status and "more than" in text and "are probed when a process maps them" in text
            ok(good, "the number of listed folders is limited, and a message says so", status, text)
            os.chmod(home, 0o700)
            status2, text2, _ = record(tmp)
            private = not status2 and "more than" not in text2
            ok(private, "folders that other users may not list are not listed", status2, text2)
            note(f"{memory} MB")
        finally:
            shutil.rmtree(home)


main()
done()

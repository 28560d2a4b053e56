#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
# case: right | py-spy, bpftrace: a program in an AppImage, on a user's FUSE mount or on NFS |
"""Each report says that Python stacks are missing since the program lies on FUSE, and how to get them; permission denied is named;
no command waits for a server that has stopped."""
import os
import time

from cards import unwrapped
from case import FOLDER, finish, record, run, say, script, start
from tap import ok, skip_all

SERVER = os.path.join(os.environ["B"], "tests", "workloads", "hung_files")
BUSY = script("busy.py", """print("ready", flush=True)
def busy():
    while True:
        pass
busy()
""")


class Mount:
    """A program that runs from a FUSE file system"""

    def __init__(self, name, option):
        self.folder = os.path.join(FOLDER, name)
        os.mkdir(self.folder)
        self.server = start(SERVER, self.folder, os.path.realpath("/usr/bin/python3"), "python3", until="mapped", stdin=-1,
                            env={**os.environ, "FUSE_OPTION": option})
        self.program = start(f"{self.folder}/python3", BUSY, until="ready")

    def hang(self):
        self.server.stdin.write("hang\n")
        self.server.stdin.flush()
        self.server.stdout.readline()

    def close(self):
        self.program.kill()
        self.server.stdin.close()
        self.program.wait()
        self.server.wait()


def reports(mount, text, *options):
    trace = record("-d", "1", "-F", "199", "-p", mount.program.pid, *options, name="left-out" + "".join(options))
    for name in ([], ["losses"], ["python"]):
        said = unwrapped(say("report", trace, *name))
        ok("so that Python stacks are missing" in said and text in said, f"report {name} has the reason{options}", said)
    said = say("info", trace)
    ok(text in said and "apart from that no losses" in said, f"info has the reason{options}", said)


def denied(mount):
    """A user's mount. The mount is root's here, so that the program can run, but the processes that read files have another uid."""
    reports(mount, "whose server may never answer; mapped by")
    reports(mount, "permission denied; mapped by", "--remote-files")
    said = say("dump", "--remote-files", mount.program.pid)
    ok("busy (" in said, "dump reads it with the rights of its user", said)


def allowed(mount):
    said = say("report", record("--remote-files", "-d", "1", "-F", "199", "-p", mount.program.pid), "python")
    ok("busy" in said, "--remote-files reads it", said)
    mount.hang()
    begun = time.monotonic()
    ended = run("dump", "--remote-files", mount.program.pid, timeout=100)
    ok(ended.returncode == 1 and "lie on a file system that does not answer" in ended.stderr, "dump ends without the server",
       (ended.stdout, ended.stderr))
    ok(time.monotonic() - begun < 20 * int(os.environ.get("SLOW", 1)), "in time", time.monotonic() - begun)


if not os.access("/dev/fuse", os.R_OK | os.W_OK):
    skip_all("no /dev/fuse")
for option, check in (("max_read=131072", denied), ("allow_other", allowed)):
    mounted = Mount(option.partition("=")[0], option)
    try:
        check(mounted)
    finally:
        mounted.close()
finish()

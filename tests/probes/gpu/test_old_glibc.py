#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim needs no function that an older glibc lacks. scripts/fresh.sh loads it in Debian 11."""
# test: parallel gate
import re
import subprocess

from shim_lib import SHIM
from tap import done, ok

NEWEST = (2, 17)  # RHEL 7; Debian 11 and Ubuntu 20.04 have 2.31, RHEL 8 has 2.28


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


symbols = re.findall(r"\*UND\*\s+\S+\s+\(?([A-Za-z_0-9.]+)\)?\s+(\S+)$", output("objdump", "-T", SHIM), re.M)
versions = {(name, version) for version, name in symbols if version.startswith("GLIBC")}
late = sorted(v for v in versions if not re.fullmatch(r"GLIBC_\d+(\.\d+)+", v[1]) or
              tuple(map(int, v[1][6:].split("."))) > NEWEST)
ok(len(versions) > 20 and not late, f"none of {len(versions)} functions of libc is newer than glibc 2.17", late)
names = {name for name, _ in versions}
ok({"dlopen", "pthread_create", "sem_timedwait"} <= names, "threads and dlopen are among them", names)
needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", SHIM)))
ok(needed == {"libc.so.6"}, "the shim needs only libc, as the loader would search for other libraries", needed)
done()

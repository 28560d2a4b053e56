#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim where the program's LD_LIBRARY_PATH has a folder relative to one that others can write to."""
# test: parallel
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from shim_lib import DOUBLES, REFUSED, STARTED, STOPPED, Shimmed, versions
from tap import done, ok

PLANTED = "#include <stdlib.h>\n__attribute__((constructor)) static void planted(void) { system(\"touch PLANTED\"); }\n"


def main():
    version = versions()[-1]
    with tempfile.TemporaryDirectory(prefix="sonde-path-") as tmp:
        # CUDA without a CUPTI beside it, so that it is searched for by name
        cuda, folder = os.path.join(tmp, "cuda"), os.path.join(tmp, "folder")
        os.mkdir(cuda)
        os.mkdir(folder)
        for name in ("libcuda.so.1", f"libcudart.so.{version}", "fake_training"):
            shutil.copy(os.path.join(DOUBLES, version, name), cuda)
        os.chdir(folder)
        marker, library = os.path.join(tmp, "marker"), os.path.join(folder, f"libcupti.so.{version}")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, text=True,
                       input=PLANTED.replace("PLANTED", marker))
        for mode, path in ((0o777, "."), (0o1777, ""), (0o777, "./."), (0o777, "absent")):
            os.chmod(folder, mode)
            r = Shimmed(version, "-n", "5", program=os.path.join(cuda, "fake_training"), LD_LIBRARY_PATH=path + ":/nowhere")
            ok(r.status == 0 and not os.path.exists(marker) and r.states() == [REFUSED] and
               "LD_LIBRARY_PATH" in r.got["shim"][0]["text"], f"{mode:o} '{path}': nothing is loaded, and the reason is reported",
               r.status, r.got["shim"], os.path.exists(marker))
        os.chmod(folder, 0o755)
        shutil.copy(os.path.join(DOUBLES, version, f"libcupti.so.{version}"), library)
        r = Shimmed(version, "-n", "5", program=os.path.join(cuda, "fake_training"), LD_LIBRARY_PATH=f".:{cuda}")
        ok(r.status == 0 and r.states() == [STARTED, STOPPED], "a relative folder that is the process's own is searched",
           r.status, r.got["shim"])
        os.chdir("/")
    done()


main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim loads no library from folders in which other users can write, although CUPTI and its own libraries are searched for there."""
# test: parallel gate
import os
import shutil
import subprocess
import tempfile

from shim_lib import DOUBLES, REFUSED, SHIM, STARTED, STOPPED, Shimmed, versions
from tap import done, ok

PLANTED = "#include <stdlib.h>\n__attribute__((constructor)) static void planted(void) { system(\"touch PLANTED\"); }\n"


def own_libraries(folder, marker):
    """The process's library path includes the current folder, which has another user's libraries."""
    load = f"import ctypes, os; os.chdir({folder!r}); ctypes.CDLL({SHIM!r}); print('loaded')"
    r = subprocess.run(["/usr/bin/python3", "-c", load], cwd="/", env={**os.environ, "LD_LIBRARY_PATH": "/nowhere:"},
                       capture_output=True, text=True)
    ok(r.stdout == "loaded\n" and not os.path.exists(marker), "the shim loads no library of the current folder", r)


def beside(tmp, version, cuda, marker):
    """libcudart is in root's folder within one like /tmp, and another user has created files beside that folder."""
    shared = os.path.join(tmp, "shared")
    bundle, extras = os.path.join(shared, "bundle"), os.path.join(shared, "extras", "CUPTI", "lib64")
    planted = os.path.join(extras, f"libcupti.so.{version}")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    shutil.copytree(cuda, bundle)
    os.makedirs(extras)
    shutil.copy(os.path.join(tmp, "planted.so"), planted)
    for path in (planted, extras, os.path.dirname(extras), os.path.join(shared, "extras")):
        os.chown(path, 54321, 54321)
    if os.path.exists(marker):
        os.unlink(marker)
    r = Shimmed(version, "-n", "5", program=os.path.join(bundle, "fake_training"))
    # an installed CUPTI is found instead, which fails without a GPU
    text = r.got["shim"][0]["text"]
    ok(r.status == 0 and not os.path.exists(marker) and r.states() == [REFUSED] and ("other users can write" in text or "CUPTI says" in text),
       "another user's CUPTI beside libcudart is not loaded", r.status, os.path.exists(marker), r.got["shim"])
    for path in (planted, extras, os.path.dirname(extras), os.path.join(shared, "extras")):
        os.chown(path, 0, 0)
    shutil.copy(os.path.join(DOUBLES, version, f"libcupti.so.{version}"), extras)
    r = Shimmed(version, "-n", "5", program=os.path.join(bundle, "fake_training"))
    ok(r.status == 0 and r.states() == [STARTED, STOPPED], "a CUPTI of the process's own user is loaded", r.status, r.got["shim"])


def by_link(tmp, version, cuda, marker):
    """LD_LIBRARY_PATH has an absolute folder, reached by root's link through a folder in which any user may rename."""
    shared, link = os.path.join(tmp, "all"), os.path.join(tmp, "link")
    os.makedirs(os.path.join(shared, "own"))
    os.chmod(shared, 0o777)
    os.symlink(os.path.join(shared, "own"), link)
    shutil.copy(os.path.join(tmp, "planted.so"), os.path.join(shared, "own", f"libcupti.so.{version}"))
    if os.path.exists(marker):
        os.unlink(marker)
    r = Shimmed(version, "-n", "5", program=os.path.join(cuda, "fake_training"), LD_LIBRARY_PATH=link)
    ok(r.status == 0 and not os.path.exists(marker) and r.states() == [REFUSED] and "LD_LIBRARY_PATH" in r.got["shim"][0]["text"],
       "a link through a folder that any user can replace: nothing is loaded", r.status, r.got["shim"])


def demo(tmp, version):
    """The demo's program with doubles in a folder that other users can write to, and another CUPTI where the loader searches"""
    shared, installed = os.path.join(tmp, "doubles"), os.path.join(tmp, "installed")
    shutil.copytree(os.path.join(DOUBLES, version), shared)
    os.chmod(shared, 0o777)
    os.mkdir(installed)
    shutil.copy(os.path.join(tmp, "planted.so"), os.path.join(installed, f"libcupti.so.{version}"))
    train = os.path.join(os.environ["ROOT"], "tests/workloads/train.py")
    r = Shimmed(version, train, shared, "1", program="/usr/bin/python3", LD_LIBRARY_PATH=installed)
    ok(r.status == 0 and r.states() == [STARTED, STOPPED] and r.got["kernel"], "the demo's GPU is traced beside any installed CUPTI",
       r.status, r.got["shim"])


def main():
    version = versions()[-1]
    with tempfile.TemporaryDirectory(prefix="sonde-path-") as tmp:
        # CUDA without CUPTI beside it, so that CUPTI is searched for by name
        cuda, folder = os.path.join(tmp, "cuda"), os.path.join(tmp, "folder")
        os.mkdir(cuda)
        os.mkdir(folder)
        for name in ("libcuda.so.1", f"libcudart.so.{version}", "fake_training"):
            shutil.copy(os.path.join(DOUBLES, version, name), cuda)
        os.chdir(folder)
        marker, library = os.path.join(tmp, "marker"), os.path.join(folder, f"libcupti.so.{version}")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, text=True,
                       input=PLANTED.replace("PLANTED", marker))
        shutil.copy(library, os.path.join(tmp, "planted.so"))
        for mode, path in ((0o777, "."), (0o1777, ""), (0o777, "./."), (0o777, "absent")):
            os.chmod(folder, mode)
            r = Shimmed(version, "-n", "5", program=os.path.join(cuda, "fake_training"), LD_LIBRARY_PATH=path + ":/nowhere")
            ok(r.status == 0 and not os.path.exists(marker) and r.states() == [REFUSED] and
               "LD_LIBRARY_PATH" in r.got["shim"][0]["text"], f"{mode:o} '{path}': nothing is loaded, and the reason is reported",
               r.status, r.got["shim"], os.path.exists(marker))
        os.chmod(folder, 0o755)
        shutil.copy(os.path.join(DOUBLES, version, f"libcupti.so.{version}"), library)
        r = Shimmed(version, "-n", "5", program=os.path.join(cuda, "fake_training"), LD_LIBRARY_PATH=f".:{cuda}")
        ok(r.status == 0 and r.states() == [STARTED, STOPPED], "a relative folder of the process's own user is searched",
           r.status, r.got["shim"])
        shutil.copy(os.path.join(tmp, "planted.so"), os.path.join(folder, "libdl.so.2"))
        shutil.copy(os.path.join(tmp, "planted.so"), os.path.join(folder, "libpthread.so.0"))
        own_libraries(folder, marker)
        beside(tmp, version, cuda, marker)
        by_link(tmp, version, cuda, marker)
        demo(tmp, version)
        os.chdir("/")
    done()


main()

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `build`: the shim and the programs with gcc alone; sonde where its packages are. Nothing is installed."""
import glob
import os
import re
import shutil
import sys

from lib import BUILD, ROOT, Skip, read_text

SHIM = os.path.join(BUILD, "libsonde-cupti.so")
CONSUMER = os.path.join(BUILD, "tests", "fakes", "cuda", "consumer.so")
WORK = os.path.join(BUILD, "tests", "gpu", "work")
SONDE = os.path.join(BUILD, "sonde")
NEEDED = (SHIM, CONSUMER, WORK)
FLAGS = ["-std=gnu11", "-O2", "-g"]
WORK_SOURCES = ["work", "work_gpu", "work_odd", "truth", "driver"]


def clean_environment():
    """An environment for make without the variables that this test was started with. No package is installed."""
    drop = ("B", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CFLAGS", "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA")
    return dict({k: v for k, v in os.environ.items() if k not in drop}, SONDE_NO_DEPS="1")


def compiler():
    return shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")


def by_hand(run):
    """As the Makefiles do, for where there is no make."""
    cc = compiler()
    for path in NEEDED:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    shim = sorted(glob.glob(os.path.join(ROOT, "cupti-shim", "*.c")))
    commands = [
        [cc, *FLAGS, "-fPIC", "-fvisibility=hidden", "-fno-omit-frame-pointer", "-Ibpf", "-shared", "-Wl,-soname,libsonde-cupti.so",
         "-Wl,-z,nodelete,-z,defs", *shim, "-ldl", "-lpthread", "-o", SHIM],
        [cc, *FLAGS, "-fPIC", "-shared", "-I.", "-Ibpf", "tests/fakes/cuda/consumer.c", "-ldl", "-lpthread", "-o", CONSUMER],
        [cc, *FLAGS, *[f"tests/gpu/{s}.c" for s in WORK_SOURCES], "-ldl", "-lpthread", "-o", WORK],
    ]
    for command in commands:
        done = run.command(command, 60, env=clean_environment())
        if done.status:
            return done
    return done


def works():
    """Whether the shim, its consumer and the program have been built."""
    return [p for p in NEEDED if os.path.exists(p)] == list(NEEDED)


def build_shim(run):
    if (run.doubles or os.environ.get("SONDE_GPU_BUILD") == "0") and works():
        run.say("shim", "as it was built before")
    elif not compiler():
        run.say("shim", "no compiler here: what was built elsewhere")
    else:
        done = None
        if shutil.which("make"):
            done = run.command(["make", "--no-print-directory", "-s", "shim"], 90, env=clean_environment())
        if not done or done.status:
            if done:
                run.say("make shim", done.why())
            done = by_hand(run)
        run.ok(done.status == 0, "the shim and the programs are built with a C compiler alone", done.why())
    if not works():
        run.ok(False, "the shim, its consumer and the program are there", [p for p in NEEDED if not os.path.exists(p)])
        return
    load = "import ctypes, sys; [ctypes.CDLL(p) for p in sys.argv[1:]]"
    done = run.command([sys.executable, "-c", load, SHIM, CONSUMER], 20)
    run.ok(done.status == 0, "the shim can be loaded", done.why())


def missing_for_sonde(run):
    """Which of sonde's tools and headers are not here: scripts/deps.sh names them."""
    headers = re.search(r'^headers="(.*)"', read_text(os.path.join(ROOT, "scripts/deps.sh")), re.M)
    missing = [t for t in ("make", "clang") if not shutil.which(t)]
    if not shutil.which("bpftool") and not os.path.exists("/usr/sbin/bpftool"):
        missing.append("bpftool")
    if not compiler():
        return missing + ["a C compiler"]
    for h in headers[1].split() if headers else []:
        source = run.file("header.c")
        with open(source, "w") as f:
            f.write(f"#include <{h}>\n")
        if run.command([compiler(), "-E", source], 10).status:
            missing.append(f"<{h}>")
    return missing


def build_sonde(run):
    """Whether there is a sonde that runs."""
    m = run.result["machine"]
    if not run.doubles and os.environ.get("SONDE_GPU_BUILD") != "0":
        missing = missing_for_sonde(run)
        if missing:
            run.say("sonde", "not built here, which lacks " + ", ".join(missing))
        else:
            done = run.command(["make", "--no-print-directory", "-s", "all"], 120, env=clean_environment())
            run.ok(done.status == 0, "sonde is built", done.why())
    done = run.command([SONDE, "--version"], 10)
    m["sonde_runs"] = done.status == 0
    if done.status:
        run.skip("sonde runs here", done.why())
    else:
        run.ok(True, "sonde runs here", version=done.out.strip())


def run(run):
    build_shim(run)
    build_sonde(run)


def need_shim():
    if not works():
        raise Skip("the shim and its programs are not there: see part build")

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""The CUDA runtime, linked statically into a program or library, is found by .symtab or a debug file; if it is stripped, this is
reported."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
from common import (
    CUDA,
    SONDE,
    Program,
    Recording,
    compare,
    directory,
    read_truth,
    versions,
)
from tap import done, ok, skip

ROUNDS = 100
# nvcc adds this to each program with GPU code
DEVICE_CODE = '__asm__(".section .nv_fatbin,\\"a\\"\\n.quad 1\\n.text\\n");\n'
PLUGIN = """#include <cuda_runtime_api.h>
__attribute__((visibility("default"))) int plugin_malloc(void **p, unsigned long n) { return cudaMalloc(p, n); }
"""
BOTH = """#include <cuda_runtime_api.h>
#include <stdio.h>
int plugin_malloc(void **p, unsigned long n);
int main(void)
{
    void *p;
    puts("ready");
    fflush(stdout);
    getchar();
    for (int i = 0; i < 70; i++)
        plugin_malloc(&p, 1000 + i);
    for (int i = 0; i < 30; i++)
        cudaMalloc(&p, 2000 + i);
    return 0;
}
"""


def run(*command, **more):
    subprocess.run(command, check=True, **more)


def build(tmp, version):
    """Builds cuda_truth with the runtime linked statically."""
    program, device = os.path.join(tmp, "truth-static"), os.path.join(tmp, "device.c")
    open(device, "w").write(DEVICE_CODE)
    run("cc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-Wl,--build-id", f"-I{CUDA}/{version}/include",
        os.path.join(HERE, "cuda_truth.c"), device, "-o", program, f"{CUDA}/{version}/lib/libcudart_static.a", "-ldl",
        "-lrt", "-lm")
    return program


def record(name, program, tmp, exact=True):
    truth = os.path.join(tmp, "truth")
    p = Program(program, truth, str(ROUNDS))
    with Recording(os.path.join(tmp, "trace")) as r:
        p.go()
        status = p.wait()
    want = read_truth(truth, False)
    got = r.calls({t[0] for t in want})
    ok(status == 0 and r.status == 0 and not r.losses(p.pid, *(t[0] for t in want)), f"{name}: no losses", status, r.status, r.losses(), r.text)
    if exact:
        compare(name, want, got)
    return r, got


def with_symbols(tmp, version):
    program = build(tmp, version)
    record(f"CUDA {version} linked in", program, tmp)
    return program


def stripped(tmp, version, program):
    debug, bare = program + ".debug", os.path.join(tmp, "stripped")
    run("objcopy", "--only-keep-debug", program, debug)
    run("strip", "-o", bare, program)
    r, got = record(f"CUDA {version} stripped", bare, tmp, exact=False)
    o = r.objects().get(bare, {})
    ok(not got and "symbols are stripped" in r.text and o.get("sites") == 0 and not o["live"],
       f"CUDA {version} stripped: reported, and no call is recorded", r.text, r.objects())
    info = subprocess.run([SONDE, "info", r.path], capture_output=True, text=True).stdout
    ok("linked into it" in info and bare in info, "`sonde info` names the stripped file", info)
    run("objcopy", "--add-section", f".gnu_debugdata={mini(tmp, debug)}", bare, os.path.join(tmp, "with-debugdata"))
    record(f"CUDA {version} with .gnu_debugdata", os.path.join(tmp, "with-debugdata"), tmp)
    run("objcopy", f"--add-gnu-debuglink={debug}", bare, os.path.join(tmp, "with-link"))
    record(f"CUDA {version} with a debug file", os.path.join(tmp, "with-link"), tmp)


def mini(tmp, debug):
    """Creates .gnu_debugdata: only the symbols, compressed."""
    path = os.path.join(tmp, "mini")
    run("objcopy", "--strip-debug", debug, path)
    run("xz", "-kf", path)
    return path + ".xz"


def both(tmp, version):
    """A plugin with a statically linked runtime, in a program that uses the shared runtime."""
    plugin, program = os.path.join(tmp, "libplugin.so"), os.path.join(tmp, "both")
    flags = [f"-I{CUDA}/{version}/include", "-O1", "-x", "c", "-"]
    run("cc", "-shared", "-fPIC", "-fvisibility=hidden", *flags, "-x", "none", "-o", plugin, "-Wl,--exclude-libs,ALL",
        f"{CUDA}/{version}/lib/libcudart_static.a", "-ldl", "-lrt", "-pthread", input=PLUGIN.encode())
    run("cc", *flags, "-x", "none", "-o", program, plugin, f"{CUDA}/{version}/lib/libcudart.so.{version}",
        f"-Wl,-rpath,{tmp}:{CUDA}/{version}/lib", input=BOTH.encode())
    p = Program(program)
    with Recording(os.path.join(tmp, "trace")) as r:
        p.go()
        p.wait()
    sizes = sorted(e["bytes"] for t in r.calls({p.pid}).values() for e in t)
    ok(sizes == [*range(1000, 1070), *range(2000, 2030)], f"CUDA {version}: 70 calls of a plugin's own runtime and 30 of "
       "the shared one, each once", sizes)


def main():
    found = [v for v, _ in versions("cuda_truth") if os.path.exists(f"{CUDA}/{v}/lib/libcudart_static.a")]
    if not found:
        skip("statically linked runtimes", "no libcudart_static.a: scripts/cuda.sh 12 13")
    for version in found:
        tmp = directory()
        program = with_symbols(tmp, version)
        both(tmp, version)
        if version == found[-1]:
            stripped(tmp, version, program)
        shutil.rmtree(tmp)
    done()


main()

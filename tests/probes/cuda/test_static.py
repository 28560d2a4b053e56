#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""The CUDA runtime, linked statically into a program or library, is found by .symtab, a debug file or a debuginfod server; if it is
stripped, this is reported."""
import ctypes
import functools
import http.server
import os
import shutil
import subprocess
import threading

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
import proc_files
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


def record(name, program, tmp, args=(), env=None, exact=True):
    truth = os.path.join(tmp, "truth")
    old = dict(os.environ)
    os.environ.update(env or {})
    p = Program(program, truth, str(ROUNDS))
    with Recording(os.path.join(tmp, "trace"), *args) as r:
        p.go()
        status = p.wait()
    os.environ.clear()
    os.environ.update(old)
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
    return bare, debug


def mini(tmp, debug):
    """Creates .gnu_debugdata: only the symbols, compressed."""
    path = os.path.join(tmp, "mini")
    run("objcopy", "--strip-debug", debug, path)
    run("xz", "-kf", path)
    return path + ".xz"


def asking():
    """The rights of the process that queries this server, and of its parent, which reads targets' data"""
    for pid in proc_files.pids():
        status = proc_files.status(pid) or {}
        if status.get("Name") != "sonde-fetcher":
            continue
        try:
            networks = {"network": os.readlink(f"/proc/{pid}/ns/net"), "parent's": os.readlink(f"/proc/{status['PPid']}/ns/net")}
        except OSError:
            continue
        files = sorted(to.split(":")[0] for to in proc_files.open_files(pid).values())
        return {**{k: status[k] for k in ("Uid", "CapPrm", "CapBnd", "Seccomp", "NoNewPrivs")}, **networks, "open": files}
    return {}


class Server(http.server.BaseHTTPRequestHandler):
    def __init__(self, files, asked, facts, *args):
        self.files, self.asked, self.facts = files, asked, facts
        super().__init__(*args)

    def do_GET(self):
        self.asked.append(self.path)
        self.facts.append(asking())
        data = self.files.get(self.path)
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *args):
        pass


def from_server(tmp, version, bare, debug):
    name = f"CUDA {version} from a server"
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError:
        skip(name, "libdebuginfod1 is not installed")
        return
    notes = subprocess.run(["readelf", "-n", bare], capture_output=True, text=True, check=True).stdout
    build_id = next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line)
    files, asked, facts = {f"/buildid/{build_id}/debuginfo": open(debug, "rb").read()}, [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, files, asked, facts))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}", "HOME": os.path.join(tmp, "home"),
           "XDG_CACHE_HOME": os.path.join(tmp, "home"), "no_proxy": "127.0.0.1"}
    os.mkdir(env["HOME"])
    record("no --debuginfod", bare, tmp, env=env, exact=False)
    ok(not asked, "no server is queried without --debuginfod", asked)
    record(name, bare, tmp, ["--debuginfod"], env)
    ok(f"/buildid/{build_id}/debuginfo" in asked, f"{name}: the server was queried", asked)
    f, none = facts[0], "0" * 16
    if os.geteuid():
        skip("the process that queries servers", "inspecting it needs root")
    else:
        ok(f and "0" not in f["Uid"].split() and f["CapPrm"] == f["CapBnd"] == none and f["Seccomp"] == "2" and
           f["NoNewPrivs"] == "1", "the process that queries servers has no root, no capabilities and a seccomp filter", f)
        ok(f and f["network"] == os.readlink("/proc/self/ns/net") != f["parent's"],
           "it may use the network, and the process that reads targets' data may not", f)
        ok(f and not set(f["open"]) & {"anon_inode", "pipe"} and not any("trace" in o for o in f["open"]),
           "it has no descriptor of the trace, a BPF map or a BPF program", f)
    files.clear()
    shutil.rmtree(env["HOME"])
    os.mkdir(env["HOME"])
    r, got = record("a server that has none", bare, tmp, ["--debuginfod"], env, exact=False)
    ok(not got and "no server has its debug file" in r.text, "a server without the debug file is reported", r.text)
    server.shutdown()


def no_servers():
    env = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}
    r = subprocess.run([SONDE, "record", "--debuginfod", "-d", "1", "-o", "/dev/null"], env=env, capture_output=True,
                       text=True)
    ok(r.returncode == 2 and "DEBUGINFOD_URLS" in r.stderr, "--debuginfod without servers names the variable to set", r)


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
    no_servers()
    if not found:
        skip("statically linked runtimes", "no libcudart_static.a: scripts/cuda.sh 12 13")
    for version in found:
        tmp = directory()
        program = with_symbols(tmp, version)
        both(tmp, version)
        if version == found[-1]:
            bare, debug = stripped(tmp, version, program)
            from_server(tmp, version, bare, debug)
        shutil.rmtree(tmp)
    done()


main()

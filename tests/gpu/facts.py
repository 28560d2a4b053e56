# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `machine`: what this machine is, what is installed, and where CUPTI, PyTorch and the rest are."""
import glob
import json
import os
import platform
import re
import shutil
import sys

from lib import BUILD, ROOT, read_text

TOOLS = ("gcc", "cc", "make", "clang", "bpftool", "gdb", "nvcc", "ptxas", "nsys", "ncu", "strace", "perf", "c++filt")
DRIVER = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
print(cuda.cuDriverGetVersion(ctypes.byref(version)), version.value)
print([line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line][0])
"""
CUPTI = """
import ctypes, sys
version = ctypes.c_uint32()
print(ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(version)), version.value)
"""
TORCH = """
import json, sys, torch
try:
    import triton
    triton = triton.__version__
except Exception as why:
    triton = None
print(json.dumps({"python": sys.executable, "version": torch.__version__, "cuda": torch.version.cuda, "triton": triton,
                  "available": torch.cuda.is_available(), "at": torch.__path__[0]}))
"""


def first_line(text):
    return (text.strip().splitlines() or [""])[0]


def environment():
    """What it runs in: gVisor, a container, a virtual machine."""
    version, cpu = read_text("/proc/version"), read_text("/proc/cpuinfo")
    cgroup = read_text("/proc/1/cgroup")
    found = {"gvisor": "gvisor" in (version + read_text("/proc/sys/kernel/osrelease")).lower() or
             platform.release() == "4.4.0" and not os.path.exists("/sys/kernel/btf"),
             "virtual_machine": "hypervisor" in cpu,
             "container": next((p for p in ("/.dockerenv", "/run/.containerenv") if os.path.exists(p)), "") or
             ("cgroup" if re.search("docker|kubepods|containerd|lxc", cgroup) else "")}
    for name in ("sys_vendor", "product_name"):
        found[name] = read_text(f"/sys/class/dmi/id/{name}").strip()
    return found


def ebpf_facts():
    try:
        names = os.listdir("/sys/kernel/btf")
    except OSError:
        names = []
    return {"root": os.geteuid() == 0, "btf": "vmlinux" in names,
            "capabilities": next((line.split()[1] for line in read_text("/proc/self/status").splitlines()
                                  if line.startswith("CapEff")), ""),
            "lockdown": read_text("/sys/kernel/security/lockdown").strip(),
            "unprivileged_bpf_disabled": read_text("/proc/sys/kernel/unprivileged_bpf_disabled").strip()}


def torch_pythons(run):
    """[(a Python that has PyTorch, where that is)]; nothing is imported, which can take half a minute."""
    seen, found = set(), []
    names = [os.environ.get("SONDE_TORCH_PYTHON"), shutil.which("python3"), sys.executable, "/usr/bin/python3",
             *sorted(glob.glob("/opt/*/bin/python3") + glob.glob("/opt/*/.venv/bin/python3") + glob.glob("/venv/*/bin/python3") +
                     glob.glob(os.path.expanduser("~/*/bin/python3")))]
    look = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    for name in names:
        if name and os.path.abspath(name) not in seen and os.access(name, os.X_OK):
            seen.add(os.path.abspath(name))
            done = run.command([name, "-c", look], 10)
            if done.status == 0:
                found.append((name, done.out.strip()))
    return found


def try_torch(run, pythons):
    """The first whose PyTorch sees a GPU, else the first; its words."""
    first = None
    for name, at in pythons[:3]:
        done = run.command([name, "-c", TORCH], 60)
        try:
            found = json.loads(done.out.strip().splitlines()[-1])
        except (IndexError, ValueError):
            found = {"python": name, "at": at, "version": None, "available": False, "why": done.why()}
        if found["available"]:
            return found
        first = first or found
    return first or {"python": None, "version": None, "available": False, "why": "no Python here has PyTorch"}


def find_cupti(run, pythons, driver):
    """The newest that is not newer than the driver: [directory, library, version]s, best first."""
    places = glob.glob("/usr/local/cuda*/extras/CUPTI/lib64") + glob.glob("/usr/local/cuda*/lib64") + \
        glob.glob("/usr/local/cuda*/targets/*/lib") + ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/cuda/extras/CUPTI/lib64"]
    for _, at in pythons:
        places += glob.glob(os.path.dirname(at) + "/nvidia/*/lib") + [at + "/lib"]
    for p in sys.path + glob.glob("/usr/local/lib/python3*/dist-packages") + glob.glob("/opt/*/lib/python3*/site-packages"):
        places += glob.glob(p + "/nvidia/*/lib")
    found, seen = [], set()
    for place in places:
        for path in sorted(glob.glob(place + "/libcupti.so.1[1-9]*")):
            match = re.search(r"\.so\.(\d+)$", path) or re.search(r"\.so\.(11)\.\d+$", path)
            real = os.path.realpath(path)
            if match and real not in seen:
                seen.add(real)
                found.append({"directory": place, "library": path, "major": int(match[1])})
    found.sort(key=lambda c: (driver and c["major"] > driver // 1000, -c["major"]))
    for c in found[:4]:
        done = run.command([sys.executable, "-c", CUPTI, c["library"]], 20)
        c["version"] = done.out.split()[1] if done.status == 0 and done.out.startswith("0 ") else done.why()
    return found


def gpus(run):
    names = "name,driver_version,memory.total,compute_cap,mig.mode.current,persistence_mode,clocks.sm,clocks.max.sm,power.limit"
    done = run.command(["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader"], 25)
    if done.status:
        return [], done.why()
    return [dict(zip(names.split(","), (v.strip() for v in line.split(",")))) for line in done.out.splitlines() if line.strip()], ""


def mps_runs():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if read_text(f"/proc/{pid}/comm").startswith(("nvidia-cuda-mps", "nvidia-cuda-mp")):
            return True
    return False


def sonde_version(run):
    commit = run.command(["git", "log", "-1", "--format=%H %cI"], 5)
    return {"version": read_text(os.path.join(ROOT, "VERSION")).strip(), "commit": commit.out.strip() if not commit.status else ""}


def doubles(run, m):
    """What is to be a GPU here, of the newest version that could be made."""
    for version in ("13", "12"):
        place = os.path.join(BUILD, "tests", "fakes", "cuda", version)
        if os.path.exists(os.path.join(place, "libcupti.so." + version)):
            m.update(library_path=place, cuda_major=int(version), gpus=[{"name": "Simulated GPU"}],
                     cudart=os.path.join(place, "libcudart.so." + version))
            m["cupti"] = [{"directory": place, "library": os.path.join(place, "libcupti.so." + version), "major": int(version)}]
            return


def run(run):
    m = run.result["machine"]
    uname = platform.uname()
    m.update(sonde=sonde_version(run), kernel=uname.release, kernel_version=uname.version, architecture=uname.machine,
             os=next((line.split("=", 1)[1].strip('"') for line in read_text("/etc/os-release").splitlines()
                      if line.startswith("PRETTY_NAME=")), ""),
             cpu=next((line.split(":", 1)[1].strip() for line in read_text("/proc/cpuinfo").splitlines()
                       if line.startswith("model name")), ""),
             cpus=len(os.sched_getaffinity(0)), memory=first_line(read_text("/proc/meminfo")).split(":")[-1].strip(),
             libc=" ".join(platform.libc_ver()), python=platform.python_version(), ebpf=ebpf_facts(), **environment())
    m["tools"] = {t: shutil.which(t) for t in TOOLS}
    m["library_path"], m["cuda_major"], m["cupti"], m["torch"] = "", 0, [], {
        "available": False, "why": "the doubles have none" if run.doubles else "there was no time to look for PyTorch"}
    run.save()
    if run.doubles:
        doubles(run, m)
        run.ok(bool(m["library_path"]), "the doubles of CUDA are there", "scripts/cupti.sh prints why NVIDIA's headers are missing")
        return
    m["nvidia_smi"], why = gpus(run)
    m["gpus"], m["module"] = m["nvidia_smi"], first_line(read_text("/proc/driver/nvidia/version"))
    m["mps"] = mps_runs()
    done = run.command([sys.executable, "-c", DRIVER], 25)
    words = done.out.split()
    m["driver_cuda"] = int(words[1]) if done.status == 0 and words[:1] == ["0"] else 0
    m["libcuda"] = words[2] if len(words) > 2 else done.why()
    m["toolkits"] = sorted(glob.glob("/usr/local/cuda*"))
    m["cuda_major"] = m["driver_cuda"] // 1000
    run.ok(m["driver_cuda"] > 0, "libcuda.so.1 is there", m["libcuda"], why)
    pythons = torch_pythons(run)
    m["cupti"] = find_cupti(run, pythons, m["driver_cuda"])
    if m["cupti"]:
        m["library_path"] = m["cupti"][0]["directory"]
    m["cudart"] = next((p for c in m["cupti"][:1] for p in sorted(
        glob.glob(c["directory"] + f"/libcudart.so.{c['major']}") +
        glob.glob(c["directory"] + f"/../../cuda_runtime/lib/libcudart.so.{c['major']}") +
        glob.glob(c["directory"] + f"/../../../lib64/libcudart.so.{c['major']}"))), None)
    run.ok(bool(m["cupti"]), "a libcupti.so is there", "neither in a toolkit nor in a wheel (pip: nvidia-cuda-cupti)")
    m["torch"] = try_torch(run, pythons)
    for key in ("gpus", "driver_cuda", "kernel", "gvisor", "virtual_machine", "container"):
        run.say(key, m[key])
    run.say("torch", m["torch"])
    run.say("cupti", m["cupti"][:1])


def with_cuda(run, **more):
    """An environment in which the right CUDA is found."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SHIM_", "WORK_", "FAKE_C", "CUDA_INJECTION", "LD_PRELOAD"))}
    path = run.result["machine"]["library_path"]
    if path:
        env["LD_LIBRARY_PATH"] = ":".join(p for p in (path, env.get("LD_LIBRARY_PATH")) if p)
    if run.result["machine"].get("cubin"):
        env["WORK_CUBIN"] = run.result["machine"]["cubin"]
    if run.doubles:
        # a test may make the double worse than it is
        env.update(FAKE_CUDA="devices=1", FAKE_CUPTI=",".join(filter(None, [os.environ.get("FAKE_CUPTI_MORE"), "ppm=20,jitter_ns=500"])))
    env.update({k: str(v) for k, v in more.items() if v is not None})
    return env

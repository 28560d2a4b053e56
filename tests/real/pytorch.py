#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of PyTorch's users under sonde: tests/real/pytorch.py [--python FILES] [--keep DIR] [--families LIST] [--by LIST] [--lite] [NAME..]

Records each program of torch_programs.py with `-t +torch`, by probes (--torch=all) and by the library in the process (--inject), and compares the number
of calls by name with what torch.profiler counts: for the work alone and for the same work under the profiler. Prints a row of a table for each, what
differs, and which of the profiler's names are not recorded. The traces and their reports are left in build/real/torch. `make real` and `make check-all`
run it.

As root. Without --python the packages are installed into build/real/venv. --python (or SONDE_TORCH_PYTHON) names interpreters with PyTorch, separated by
colons, each with a folder of its own for its traces; programs whose packages it lacks are left out. --lite records by the default options and compares
nothing."""
import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
B = os.environ.setdefault("B", os.path.join(ROOT, "build"))
os.environ.setdefault("ROOT", ROOT)
os.environ.setdefault("SONDE", os.path.join(B, "sonde"))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests/lib"), os.path.join(ROOT, "tests/probes/torch")]
from recorded import OTHERS, Recorded  # noqa: E402
from sonde_cli import SONDE, tables  # noqa: E402
from torch_env import Recording  # noqa: E402
from torch_packages import install, version  # noqa: E402

PROGRAMS = ("Torchvision", "Transformers", "Bert", "Trainer", "Lightning", "Accelerate", "Compile", "Script", "Vmap", "Lbfgs", "Workers", "Ddp", "Fsdp")
PACKAGES = {"Torchvision": ("torchvision",), "Transformers": ("transformers",), "Bert": ("transformers",), "Trainer": ("transformers", "accelerate"),
            "Lightning": ("lightning",), "Accelerate": ("accelerate",)}
REPORTS = ("summary", "torch", "steps")
# Of the profiler's events, those that no function of a library can show: functions of TorchScript, the in-place
# form of the function `detach`, autograd.Functions, ranges that C++ code opens, and operators of c10d that C++ calls
NO_FUNCTION = re.compile(r"(forward|detach_|CompiledFunction|Pregraph bytecode|PythonSubclass|AOTDispatcher Runtime Wrapper Prologue|"
                         r"TorchDynamo Cache Lookup)$|## Call CompiledFxGraph |Torch-Compiled Region: |c10d::|gloo:|"
                         r"torch\.distributed\.ddp\.reducer::|torch::distributed::reducer::")
# torch.compile opens these only while torch.profiler runs.
BY_PROFILER = re.compile(r"## Call CompiledFxGraph |(AOTDispatcher Runtime Wrapper Prologue|Pregraph bytecode)$")
# To probes, nodes of autograd.Functions have one class.
PYTHON_NODE, NAME_IN_PYTHON = "torch::autograd::PyNode", "CompiledFunctionBackward"


class Probes:
    options, lite = ["--torch=all"], []
    # DTensor calls operators of local tensors by a copy of the dispatcher's code that is inlined in libtorch_python.
    differ = {"Fsdp": {"aten::add_"}}

    @staticmethod
    def is_left_out(name):
        return bool(OTHERS.match(name) or NO_FUNCTION.match(name))


class Inject:
    options, lite = ["--inject", "--torch=shim,inner,every"], ["--inject"]
    differ = {}

    @staticmethod
    def is_left_out(name):
        return name == "[memory]"


WAYS = {"probes": Probes, "inject": Inject}


def compare(truth, recorded, window, way):
    """How many calls of how many names there are, and what differs"""
    expected = collections.Counter({n: c for n, c in truth["counts"].items()
                                    if not way.is_left_out(n) and not (window == "alone" and BY_PROFILER.match(n))})
    calls = [(e, NAME_IN_PYTHON if name == PYTHON_NODE else name) for e, name in recorded.within(*truth[window])]
    found = collections.Counter(name for _, name in calls)
    # The profiler of 2.3 misses operators that gloo's threads call.
    in_main_thread = collections.Counter(name for e, name in calls if e["tid"] == e["pid"])
    wrong = {n: (found[n], expected[n]) for n in {*found, *expected} if expected[n] not in (found[n], in_main_thread[n])}
    return sum(found.values()), len(found), wrong


def reports(path):
    for report in REPORTS:
        with open(f"{path[:-6]}-{report}.txt", "w") as f:
            subprocess.run([SONDE, "report", path, report], stdout=f, stderr=subprocess.STDOUT, check=False)


def first_line(path):
    return subprocess.run([SONDE, "report", path], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def lost(trace):
    losses = (e for e in trace.events("meta_loss") if e["family"] == 0x0e and e["reason_name"] != "LOSS_ATTACH_GAP")
    return sum(e["count"] for e in losses) + sum(e["records"] for e in trace.events("torch_dropped"))


def measure(name, by, python, args):
    way = WAYS[by]
    r = Recording([python, f"{HERE}/torch_programs.py", name], *(way.lite if args.lite else way.options), families=args.families)
    torch = version(python, "torch")
    os.makedirs(os.path.join(args.keep, torch), exist_ok=True)
    path = os.path.join(args.keep, torch, f"{name}-{by}.sonde")
    os.replace(r.path, path)
    reports(path)
    truths = [json.loads(line) for line in r.output if line.startswith('{"name"')]
    versions = ", ".join(f"{p} {version(python, p)}" for p in ("torch", *PACKAGES.get(name, ())))
    loops = tables("report", path, "steps").get("loops", [])
    steps = ", ".join(str(loop["steps"]) for loop in loops) or "none"
    ok = bool(truths) and not r.status
    for truth in truths:
        recorded = Recorded(r.trace, truth["pid"])
        for window in ("alone", "profiled"):
            calls, names, wrong = compare(truth, recorded, window, way)
            print(f"| {name} | {versions} | {by} | {window} | {calls} | {names} | {len(wrong)} | {lost(r.trace)} | {truth['steps']}: {steps} |", flush=True)
            for n, (found, expected) in sorted(wrong.items()):
                print(f"    {n}: {found} recorded, {expected} by torch.profiler")
            ok = ok and (not wrong.keys() - way.differ.get(name, set()) or args.lite)
    missing = {n for truth in truths for n in truth["counts"] if way.is_left_out(n)}
    if missing:
        print(f"    not recorded: {', '.join(sorted(missing))}")
    print(f"    {first_line(path)}", flush=True)
    if not truths:
        print(f"{name}: it did not run: {r.messages}")
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("SONDE_TORCH_PYTHON"))
    parser.add_argument("--keep", default=os.path.join(B, "real/torch"))
    parser.add_argument("--families", default="+torch")
    parser.add_argument("--by", default=",".join(WAYS), help="%(default)s")
    parser.add_argument("--lite", action="store_true")
    parser.add_argument("programs", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("tests/real/pytorch.py: tracing needs root")
    for name in args.programs:
        if name not in PROGRAMS:
            sys.exit(f"tests/real/pytorch.py: no program '{name}'; there are: {', '.join(PROGRAMS)}")
    results = []
    for python, name in itertools.product((args.python or install()).split(":"), args.programs or PROGRAMS):
        missing = [p for p in PACKAGES.get(name, ()) if not version(python, p)]
        if missing:
            print(f"{name}: left out, as {python} lacks {', '.join(missing)}")
        else:
            results += [measure(name, by, python, args) for by in args.by.split(",")]
    sys.exit(not all(results))


main()

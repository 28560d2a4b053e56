#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits
"""--torch=functions and a JSON file of Nsight's format on a PyTorch training, attached: cProfile's counts, the shapes, domains and colors."""
import json
import os
import subprocess
import tempfile

import sonde_cli
from functions_lib import HERE, REFUSED, MISSING, TRACED, Calls, record
from tap import done, ok, skip_all

STEPS = 20
PYTHON = os.path.join(sonde_cli.B, "venv", "bin", "python")
tmp = tempfile.mkdtemp(prefix="sonde-functions-torch-")
path = os.path.join(tmp, "x.sonde")
if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode if os.path.exists(PYTHON) else True:
    skip_all("build/venv has no PyTorch")

with subprocess.Popen([PYTHON, os.path.join(HERE, "torch_work.py"), str(STEPS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      text=True) as program:
    program.stdout.readline()
    sonde = record(path, "-t", "functions", "--inject", "-p", str(program.pid), "--torch=functions",
                   "--functions-trace", os.path.join(HERE, "nsight.json"))
    traced = {"torch.nn.Module", "backward", "SGD.step", "Adam.step", "__main__:step", "torch.nn.functional:relu"}
    ok(sonde.wait_trace(lambda trace: traced <= Calls(path).names(TRACED)), "PyTorch's functions and those of the file are traced", sonde.messages)
    print("go", file=program.stdin, flush=True)
    program.stdout.readline()
    sonde.end()
    print("end", file=program.stdin, flush=True)
    profiled = json.loads(program.stdout.readline())

calls = Calls(path)
modules = ["Net", "Linear", "Linear", "CrossEntropyLoss"]
right = {**{name: n for name, n in profiled.items() if name != "_"}, "SGD.step": STEPS, **{m: modules.count(m) * STEPS for m in modules}}
ok(dict(calls.counts) == right, "as many calls as cProfile counts", dict(calls.counts), right)
ok(sum(calls.counts[m] for m in set(modules)) == profiled["_"], "as many calls of modules as of Module.__call__", profiled["_"])
shapes = {"Net": {"[4,8] [4,16]": STEPS}, "Linear": {"[4,8]": STEPS, "[4,16]": STEPS}, "CrossEntropyLoss": {"[4,3] [4]": STEPS}}
ok(calls.shapes == shapes, "shapes of the tensors, also of keyword arguments", dict(calls.shapes))
styles = {(calls.text(e, "name"), calls.text(e, "domain"), e["color"]) for e in calls.spans}
ok({("__main__:step", "training", 0xFF000000), ("torch.nn.functional:relu", "PyTorch", 0xFFE8B795), ("Net", "torch", 0),
    ("torch.optim:Optimizer.zero_grad", "", 0xFFFF0000)} <= styles, "domains and colors", styles)
ok(calls.names(REFUSED) == {"torch.nn.functional:linear"} and calls.names(MISSING) == {"torch.optim:SGD.zero_grad"},
   "what is no Python function, or inherited, is refused", calls.names(REFUSED), calls.names(MISSING))
rows = {(r["domain"], r["function"]): r for r in sonde_cli.tables("report", path, "functions")["functions"]}
outer, inner = rows["training", "__main__:step"], [rows["torch", name] for name in ("Net", "CrossEntropyLoss", "backward", "SGD.step")]
zero = rows["", "torch.optim:Optimizer.zero_grad"]
ok(outer["calls"] == STEPS and outer["self_ns"] == outer["total_ns"] - sum(r["total_ns"] for r in inner) - zero["total_ns"],
   "report functions: the time of a step is its own and that of the functions within it", outer, inner)
done()

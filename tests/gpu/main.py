#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/gpu/run: what sonde and its shim do on a real GPU, in eight minutes.

usage: tests/gpu/run [--out FILE.json] [--minutes 8] [--doubles] [--only PART,..] [--keep DIR]

Needs a machine with an NVIDIA GPU and its driver, Python 3.8 and gcc (or a build/ that was made elsewhere). What else
is there is used: PyTorch, Triton, CUPTI (a toolkit's or pip's), root and eBPF. What is not is skipped and named.
Nothing is installed, and no setting of the GPU is changed.

  --out FILE.json   where the results go (default: build/gpu.json): the machine's facts, each check with its figures
  --minutes N       all in all (default: 8); what does not fit is skipped by name
  --doubles         against the doubles of CUDA in build/tests/fakes/cuda, where there is no GPU: `make test` does that
  --only PART,..    these alone, after `build`: PARTS
  --keep DIR        all that was written in between stays there: what the shim reported, what programs said

examples:
  tests/gpu/run
  make gpu
  sudo tests/gpu/run --out h100.json
  tests/gpu/run --only program,overhead --minutes 3
"""
import argparse
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import behaviours
import cudart
import ebpf
import facts
import overhead
import program
import pytorch
from lib import BUILD, Late, Run, end_all

import build

# In this order: what matters most first. Seconds at most, and below what it is not worth beginning
PARTS = {
    "machine": (facts.run, 100, 1),
    "build": (build.run, 150, 5),
    "program": (program.run, 90, 10),
    "ebpf": (ebpf.run, 70, 15),
    "cudart": (cudart.run, 30, 5),
    "pytorch": (pytorch.run, 170, 40),
    "overhead": (overhead.run, 110, 25),
    "behaviours": (behaviours.run, 110, 20),
}


def arguments():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.replace("PARTS", ", ".join(p for p in PARTS if p not in ("machine", "build"))).strip())
        sys.exit(0)
    p = argparse.ArgumentParser(add_help=False, usage="tests/gpu/run [--out FILE.json] [--minutes 8] [--doubles] [--only PART,..] "
                                "[--keep DIR]")
    p.add_argument("--keep", default="")
    p.add_argument("--out", default=os.path.join(BUILD, "gpu.json"))
    p.add_argument("--minutes", type=float, default=8)
    p.add_argument("--doubles", action="store_true")
    p.add_argument("--only", default="")
    args = p.parse_args()
    only = [name for name in args.only.split(",") if name]
    if set(only) - set(PARTS):
        p.error(f"no part {', '.join(sorted(set(only) - set(PARTS)))}; there are {', '.join(PARTS)}")
    if not 0.2 <= args.minutes <= 1000:
        p.error("--minutes: from 0.2 on")
    args.only = only
    return args


def on_alarm(sig, frame):
    raise Late()


def main():
    args = arguments()
    out = os.path.abspath(args.out)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    run = Run(out, args.minutes, args.doubles, args.keep)
    libraries = os.path.join(BUILD, "lib")
    if os.path.isdir(libraries):  # of a sonde that was built elsewhere: make gpu-libs
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), libraries]))

    def on_end(sig, frame):
        """Who ends this gets what there is by now."""
        signal.signal(sig, signal.SIG_IGN)
        run.result["ended_by"] = signal.Signals(sig).name
        end_all()
        run.save()
        sys.stdout.flush()
        os._exit(128 + sig)

    signal.signal(signal.SIGALRM, on_alarm)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, on_end)
    run.save()
    for name, (function, limit, needs) in PARTS.items():
        if not args.only or name in args.only or name in ("machine", "build"):
            try:
                run.run_part(name, function, limit, needs)
            except Late:  # just as the part ended
                pass
    return run.close()


if __name__ == "__main__":
    sys.exit(main())

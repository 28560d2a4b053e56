#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Ranks: the numbers of a process's environment that launchers set, and nothing else of it."""
import json
import os
import socket
import subprocess

from recording import workdir
from sonde_cli import SONDE, Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

# The first shell has no rank. Each child prints its pid and waits for a file.
ENVIRONMENTS = {
    "a": ("RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 PASSWORD=hunter2", (1, 2, 0)),
    "b": ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3", (0, 3, -1)),
    "c": ("RANK=hunter2 WORLD_SIZE=2", None),
    "d": ("RANK=1 WORLD_SIZE=4 LOCAL_RANK=1", (1, 4, 1)),
}
GO = os.path.join(workdir(), "go")
# This one runs another program, which has no rank, after its own rank was read.
LAST = {"d": "exec env -u RANK sleep 0.5"}
SCRIPT = "".join(f"env {text} sh -c 'echo {name} $$; while [ ! -e {GO} ]; do sleep 0.1; done; {LAST.get(name, 'exit 0')}' & "
                 for name, (text, _) in ENVIRONMENTS.items()) + "wait"


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    path = os.path.join(workdir(), "rank.sonde")
    environment = {k: v for k, v in os.environ.items() if "RANK" not in k and not k.startswith(("SLURM_", "PMI_"))}
    sonde = Sonde(path, "-t", "proc", "--", "sh", "-c", SCRIPT, env=environment, stdout=subprocess.PIPE)
    pids = dict(sonde.process.stdout.readline().split() for _ in ENVIRONMENTS)
    pids = {name: int(pid) for name, pid in pids.items()}
    ranked = {pids[name] for name, (_, rank) in ENVIRONMENTS.items() if rank}
    sonde.wait_trace(lambda trace: ranked <= {e["pid"] for e in trace.events("proc_rank")})
    with open(GO, "w", encoding="ascii"):
        sonde.end(None)
    trace = Trace(path)
    found = {e["pid"]: (e["rank"], e["world_size"], e["local_rank"]) for e in trace.events("proc_rank")}
    for name, (text, rank) in ENVIRONMENTS.items():
        ok(found.get(pids[name]) == rank, f"the rank of {text.split()[0]}", found, sonde.messages)
    ok(all(e["host_text"] == socket.gethostname() for e in trace.events("proc_rank")), "ranks have the name of their machine")
    # the script, which is a command line, has the text in the arguments of sh and env
    texts = [e["text"] for e in trace.events("meta_string")]
    ok(not any("hunter2" in str(t) and "sh -c" not in str(t) and "env " not in str(t) for t in texts), "nothing else of an environment is recorded", texts)
    chrome = json.loads(subprocess.run([SONDE, "export", path, "--to", "chrome"], capture_output=True, text=True, check=True).stdout)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in chrome if e["name"] == "process_name"}
    order = {e["pid"]: e["args"]["sort_index"] for e in chrome if e["name"] == "process_sort_index"}
    ok(names[pids["a"]] == "rank 1: sh" and names[pids["c"]] == "sh", "exports name processes by their ranks", names)
    # each program of a process has an id of its own, and the pid as a label
    labels = {e["pid"]: e["args"]["name"] for e in chrome if e["name"] == "process_labels"}
    later = [pid for pid, text in labels.items() if text == f"pid {pids['d']}"]
    ok(names[pids["d"]] == "rank 1: sh" and [names[pid] for pid in later] == ["sleep"] and later[0] not in order,
       "a program that its process runs later without a rank has none", names, labels, order)
    ok(order[pids["b"]] < order[pids["a"]] < 0 and pids["c"] not in order, "and sort them", order)
    done()


main()

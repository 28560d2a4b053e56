#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Family nvml with a double of NVML: each value of each metric exactly as the library returned it, histories of samples, processes,
values that a GPU does not have, two GPUs, the period's bounds; and the rights of the process that reads them."""
import os
import subprocess
import tempfile
import time

import proc_files
from nvml_lib import need_double, record, start, values
from sonde_cli import SONDE
from sonde_trace import Trace
from tap import done, ok
from waiting import wait_for

# Metric: the script's key, the answers, and the values that they are
NUMBERS = {
    "sm_clock": (1980, 1005, 1410),
    "sm_clock_max": (1980,),
    "memory_clock": (2619, 1593),
    "memory_clock_max": (2619,),
    "clock_limits": (0, 4, 0x44),
    "power_limit": (700000, 300000),
    "temperature": (41, 77),
    "temperature_slowdown": (90,),
    "pcie_sent": (123456, 7),
    "pcie_received": (0, 99),
    "pcie_replays": (0, 0, 3),
    "nvlink_sent": (1 << 40, (1 << 40) + 5),
    "nvlink_received": (17,),
    "nvlink_replays": (2,),
    "ecc_corrected": (0, 1 << 33),
    "ecc_uncorrected": (0, 2),
}
KEYS = {"clock_limits": "limits", "temperature_slowdown": "slowdown"}
CONSTANT = ("sm_clock_max", "memory_clock_max", "temperature_slowdown")


def expected(answers, n):
    """The first n answers: the last one is repeated"""
    return [answers[min(i, len(answers) - 1)] for i in range(n)]


def check_numbers(tmp):
    script = ";".join(f"0 {KEYS.get(metric, metric)} {' '.join(map(str, answers))}" for metric, answers in NUMBERS.items())
    # of the second GPU only one value: the others are not supported, not permitted, or not found
    script += ";1 temperature 30;1 power denied;1 memory -;1 busy_samples none"
    begin = time.monotonic_ns()
    rec, status, trace = record(os.path.join(tmp, "numbers.sonde"), script, "--nvml-period", "200", "-d", "1.5")
    end, found = time.monotonic_ns(), values(trace)
    ok(status == 0 and not [*trace.events("meta_loss")], "recorded without losses", rec.messages)
    for metric, answers in NUMBERS.items():
        got = [e["value"] for e in found[0, metric]]
        n = 1 if metric in CONSTANT else len(got)
        ok(len(got) > 3 or metric in CONSTANT, f"{metric}: several readings", got)
        ok(got == expected(answers, n), f"{metric}: the values that NVML returned", got)
    ok({key for key in found if key[0] == 1} == {(1, "temperature")}, "what a GPU does not have is left out, not 0", sorted(found))
    of_one = {metric: [e["time"] for e in found[0, metric]] for metric in NUMBERS if metric not in CONSTANT}
    clocks, limits = of_one["sm_clock"], of_one["clock_limits"]
    ok(clocks[:len(limits)] == limits[:len(clocks)], "the clock and what limits it have one time")
    ok(all(times == sorted(set(times)) for times in of_one.values()), "each reading is later than the one before")
    ok(all(begin < t < end for times in of_one.values() for t in times), "times are on CLOCK_MONOTONIC")


def check_devices(tmp):
    rec, _, trace = record(os.path.join(tmp, "devices.sonde"), "0 mig 1;1 temperature 30", "--nvml-period", "200", "-d", "0.5")
    devices = {e["device"]: e for e in trace.events("nvml_device")}
    ok(sorted(devices) == [0, 1] and len([*trace.events("nvml_device")]) == 2, "each GPU is described once", rec.messages)
    one = devices[1]
    ok((one["uuid_first"], one["uuid_last"]) == (0x1212121212121212,) * 2, "its UUID is that which CUPTI reports", one)
    ok((one["pci_bus"], one["model"], one["driver"], one["mig"]) == (0x11, "NVIDIA Double 80GB", "580.00", 0), "PCI, model, driver", one)
    ok(devices[0]["mig"] == 1, "a GPU that MIG divides")


def check_histories(tmp):
    script = "0 busy_samples 1+2 40+60 none 100+0+7;0 memory_busy_samples -;0 use 1:33 1:44;0 power_samples 300000+310000"
    _, _, trace = record(os.path.join(tmp, "histories.sonde"), script, "--nvml-period", "200", "-d", "1.5")
    found = values(trace)
    busy = found[0, "busy"]
    repeated = [40, 60] + [100, 0, 7] * len(busy)
    # the samples of the first reading are from before the recording
    ok(len(busy) > 5 and [e["value"] for e in busy] == repeated[:len(busy)], "all samples since the last reading, each once",
       [e["value"] for e in busy])
    ok(busy[1]["time"] - busy[0]["time"] == busy[3]["time"] - busy[2]["time"] == 1000000, "samples have their own times")
    memory = [e["value"] for e in found[0, "memory_busy"]]
    ok(memory == expected((33, 44), len(memory)) and len(memory) > 3, "without a history the present value", memory)
    power = [e["value"] for e in found[0, "power"]]
    ok(power == [300000, 310000] * (len(power) // 2) and len(power) > 5, "samples of power", power)


def check_processes(tmp):
    me = os.getpid()
    script = f"0 computing {me}:33000000000+1:5;0 drawing {me}:33000000000+4194303;0 process_use none {me}:87:12 {me}:300:1"
    _, _, trace = record(os.path.join(tmp, "processes.sonde"), script, "--nvml-period", "200", "-d", "1")
    found = values(trace)
    of_me = {metric: sorted({e["value"] for e in found[0, metric, me]}) for metric in ("process", "process_memory", "process_busy")}
    ok(of_me == {"process": [3], "process_memory": [33000000000], "process_busy": [87]}, "kinds, memory and use of a process", of_me)
    ok(len(found[0, "process_busy", me]) == 1, "a share of more than 100% is left out")
    ok((0, "process_memory", 4194303) not in found and found[0, "process", 4194303], "memory that is not known is left out")
    names = {e["process"]: e["text"] for e in trace.events("nvml_process")}
    ok(names.get(me, "").startswith("python3") and names[me].endswith("test_values.py") and names.get(1), "processes have names",
       names)
    ok(4194303 not in names and [e["process"] for e in trace.events("nvml_process")].count(me) == 1, "each once, and only those that run")


def check_period(tmp):
    for used in (10, 60000):
        _, status, trace = record(os.path.join(tmp, "period.sonde"), "0 temperature 1;0 pcie_sent 5", "--nvml-period", str(used), "-d", "1")
        n = len(values(trace)[0, "temperature"])
        ok(status == 0 and (n == 1 if used == 60000 else n > 10), f"a period of {used} ms: readings", n)
        ok(((0, "pcie_sent") in values(trace)) == (used > 1000), "queries that take 20 ms are not made 100 times a second")
    for given in ("0", "-1", "9", "60001", "18446744073709551626", "1e3"):
        r = subprocess.run([SONDE, "record", "-f", "-o", os.path.join(tmp, "refused.sonde"), "--nvml-period", given, "-d", "1"],
                           capture_output=True, text=True, check=False)
        ok(r.returncode == 2 and r.stderr.count("\n") == 1 and f"needs a number of ms from 10 to 60000, not '{given}'" in r.stderr,
           f"a period of {given} ms is refused", r.returncode, r.stderr)


def check_rights(tmp):
    path = os.path.join(tmp, "rights.sonde")
    rec = start(path, "* probe 1;0 temperature 1", "--nvml-period", "50")
    child = proc_files.child_named(rec.pid, "sonde-nvml")
    worker = proc_files.status(rec.pid)
    ok(wait_for(lambda: (proc_files.status(child) or {}).get("Seccomp") == "2", 10, 0.05), "its system calls are filtered")
    s = proc_files.status(child)
    ok(s["Uid"] == worker["Uid"] and s["Gid"] == worker["Gid"] and set(s["Uid"].split()).isdisjoint({"0"}), "it has sonde's account",
       s["Uid"])
    ok({s[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}, "it has no capability")
    ok(s["NoNewPrivs"] == "1" and s.get("Groups", "").strip() == "", "no_new_privs, no further group")
    files = proc_files.open_files(child)
    ok(sorted(files) == [0, 1, 2, 3] and [files[fd] for fd in (0, 1, 2)] == ["/dev/null"] * 3 and files[3].startswith("socket:"),
       "it has only a socket", files)
    rec.end()
    ok(proc_files.status(child) is None, "it ends with the recording")
    device = next(Trace(path).events("nvml_device"))
    # EACCES by Landlock, or if the kernel lacks it by nothing; EPERM by the filter
    ok(device["driver"] in ("13 1 1 1 13", "0 1 1 1 0"), "the library opens no other file, creates none, runs nothing, has no network",
       device["driver"])
    ok(not os.path.exists("/tmp/sonde-nvml-probe"), "no file was created")


def main():
    need_double()
    with tempfile.TemporaryDirectory() as tmp:
        check_numbers(tmp)
        check_devices(tmp)
        check_histories(tmp)
        check_processes(tmp)
        check_period(tmp)
        check_rights(tmp)
    done()


main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Family nvml when NVML fails: a query hangs, the library crashes, a GPU is lost, the driver is missing, there is no NVML. The
recording goes on, the readings that are missing are counted, and nothing is said about what no user asked for."""
import os
import subprocess
import tempfile

import proc_files
from cards import unwrapped
from nvml_lib import need_double, record, start, values
from sonde_cli import SONDE, tables
from tap import done, ok, skip
from waiting import wait_for

PERIOD = ("--nvml-period", "100")


def lost(path):
    """The readings that are missing, by report losses"""
    return sum(row["count"] for row in tables("report", path, "losses")["losses"] if row["family"] == "nvml")


def ends_whole(trace):
    return [e["reason"] for e in trace.events("meta_end")] == [2]


def failed(tmp, name, script, message, **more):
    path = os.path.join(tmp, f"{name}.sonde")
    rec, status, trace = record(path, script, *PERIOD, "-d", "2.5", families=("-t", "nvml,proc"), **more)
    ok(status == 0 and ends_whole(trace), f"{name}: the recording goes on", rec.messages)
    ok(message in rec.messages, f"{name}: a message says why", rec.messages)
    ok(lost(path) > 3, f"{name}: the missing readings are counted", lost(path))
    said = subprocess.run([SONDE, "report", path, "losses"], capture_output=True, text=True, check=True).stdout
    said = unwrapped(said)
    ok("could not be read; the values that were read hold" in said and message in said, f"{name}: report losses says it", said)
    return values(trace)


def check_hang(tmp):
    found = failed(tmp, "hang", "0 power_limit 5;0 temperature 40 41 hang", "nvmlDeviceGetTemperature did not return within 0.5 s: "
                   "there are no more values of NVML", switches=",short-queries")
    ok([e["value"] for e in found[0, "temperature"]] == [40, 41], "hang: all values before it are there")


def check_crash(tmp):
    found = failed(tmp, "crash", "0 temperature 40 41 crash", "sonde-nvml, which reads NVML, was ended by signal 11")
    ok([e["value"] for e in found[0, "temperature"]] == [40, 41], "crash: all values before it are there")


def check_lost_gpu(tmp):
    found = failed(tmp, "lost GPU", "0 temperature 40 41 lost;1 temperature 7", "GPU 0 is lost (NVML_ERROR_GPU_IS_LOST)")
    ok([e["value"] for e in found[0, "temperature"]] == [40, 41], "lost GPU: all values before it are there")
    ok(len(found[1, "temperature"]) > 5, "lost GPU: the other one is still read", len(found[1, "temperature"]))


def check_killed(tmp):
    path = os.path.join(tmp, "killed.sonde")
    rec = start(path, "0 temperature 40", *PERIOD)
    child = proc_files.child_named(rec.pid, "sonde-nvml")
    os.kill(rec.pid, 9)
    rec.end(None)
    ok(wait_for(lambda: proc_files.status(child) is None, 10, 0.05), "its process ends with a recording that is killed")


def check_absent(tmp):
    path = os.path.join(tmp, "absent.sonde")
    rec, status, _ = record(path, "* init 9", "-d", "0.5")
    ok(status == 3 and "nvmlInit_v2 returned NVML_ERROR_DRIVER_NOT_LOADED" in rec.messages and "nothing was recorded" not in rec.messages,
       "no driver: a requested family says so, once", status, rec.messages)
    rec, status, _ = record(path, "* init 9", "-d", "0.5", families=("-t", "+proc"))
    ok(status == 0 and "nvml" not in rec.messages.lower(), "no driver: nothing is said if no user asked", rec.messages)
    rec, status, _ = record(path, "* init 18", "-d", "0.5", families=("-t", "+proc"))
    ok(status == 0 and "nvmlInit_v2 returned NVML_ERROR_LIB_RM_VERSION_MISMATCH" in rec.messages,
       "library and driver that do not fit are reported in any case", rec.messages)


def check_no_library(tmp):
    path = os.path.join(tmp, "none.sonde")
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    if "libnvidia-ml.so.1" in cache:
        skip("this machine has NVML", "no NVML")
        return
    for families, n, status in (("nvml", 1, 3), ("nvml,proc", 1, 3), ("+proc", 0, 0)):
        r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", families, "-d", "0.5"], capture_output=True, text=True, check=False)
        ok(r.returncode == status and r.stderr.count("this machine has no libnvidia-ml.so.1, which comes with NVIDIA's driver") == n and
           "nothing was recorded" not in r.stderr, f"no NVML, -t {families}: {n} messages, exit status {status}", r.returncode, r.stderr)
        ok(lost(path) == 0, "and no loss")


def main():
    need_double()
    with tempfile.TemporaryDirectory() as tmp:
        check_no_library(tmp)
        check_hang(tmp)
        check_crash(tmp)
        check_lost_gpu(tmp)
        check_killed(tmp)
        check_absent(tmp)
    done()


main()

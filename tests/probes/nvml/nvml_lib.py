# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Records the double of NVML (tests/fakes/nvml/), whose answers a script states (script.h there)."""
import collections
import os

from sonde_cli import Sonde
from sonde_trace import Trace
from tap import skip_all

DOUBLE = os.path.join(os.environ["B"], "tests/fakes/nvml/libnvidia-ml.so.1")


def need_double():
    if not os.path.exists(DOUBLE):
        skip_all("the double of NVML could not be made: nvml.h is missing (scripts/nvml.sh)")


def start(path, script, *options, switches="", families=("-t", "nvml"), **popen):
    """A recording on a machine with the double"""
    return Sonde(path, *families, *options, mode=f"meter-library:{DOUBLE}{switches}", env={"FAKE_NVML": script}, **popen)


def values(trace):
    """{(device, metric): [event]} and {(device, metric, pid): [event]} in the order of the trace"""
    found = collections.defaultdict(list)
    for e in trace.events("nvml_value"):
        metric = e["metric_name"].removeprefix("NVML_METRIC_").lower()
        key = (e["device"], metric) + ((e["process"],) if e["process"] else ())
        found[key].append(e)
    return found


def record(path, script, *options, **more):
    """A recording to its end: the Sonde, its exit status, and its trace"""
    rec = start(path, script, *options, **more)
    status = rec.end(None)
    return rec, status, Trace(path)

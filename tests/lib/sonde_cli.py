# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the program sonde: recordings in the background, the tables of reports, and synthetic traces."""
import json
import os
import signal
import subprocess

from waiting import wait_for

# Set by tests/run; the defaults are for a script that is run by itself
ROOT = os.environ.setdefault("ROOT", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
B = os.environ.setdefault("B", os.path.join(ROOT, "build"))
SONDE = os.environ.setdefault("SONDE", os.path.join(B, "test", "sonde"))
SLOW = int(os.environ.get("SLOW", 1))  # tests/lib/recording.py
MAKE_TRACE = os.path.join(B, "tests", "golden", "make_trace")


class Sonde:
    """`sonde record`. The constructor returns when it traces, or ends the test if it does not. Its messages so far are .messages."""

    def __init__(self, path, *options, mode="", until="tracing into", prefix=(), program=SONDE, **popen):
        self.path, self.messages = path, ""
        env = {**os.environ, "SONDE_TEST": mode, **popen.pop("env", {})}
        self.process = subprocess.Popen([*prefix, program, "record", "-f", "-o", path, *options], stderr=subprocess.PIPE,
                                        text=True, env=env, **popen)
        self.pid = self.process.pid
        self.wait_for(until)

    def wait_for(self, text):
        """Reads messages up to one that contains this text."""
        for line in self.process.stderr:
            self.messages += line
            if text in line:
                return
        raise SystemExit(f"Bail out! sonde record ended without '{text}':\n{self.messages}")

    def wait_trace(self, condition, seconds=60):
        """Waits until the condition is true of the trace, which has all records that are a second old. Returns whether it is."""
        from sonde_trace import Trace
        return wait_for(lambda: condition(Trace(self.path)), seconds * SLOW, 0.3)

    def wait_probed(self, prefix, n=1):
        """Waits until n files whose path begins so have probes, so that calls from then on are recorded."""
        return self.wait_trace(lambda trace: trace.probed(prefix) >= n)

    def end(self, sig=signal.SIGINT):
        """Sends the signal, if any, and returns the exit status once the recording has ended."""
        if sig:
            self.process.send_signal(sig)
        self.messages += self.process.communicate(timeout=150 * SLOW)[1]
        return self.process.returncode


def tables(*args):
    """The tables of `sonde ARGS --format json`"""
    out = subprocess.run([SONDE, *args, "--format", "json"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)["tables"]


def make_trace(path, events, schema, *families, encoding="utf-8"):
    """
    Writes PATH.sonde with these events, a text in the format of tests/golden/make_trace.c or a list of its lines. schema is a file or
    the schema itself. Returns the name of the trace.
    """
    if isinstance(schema, dict):
        with open(path + ".json", "w", encoding="utf-8") as f:
            json.dump(schema, f)
        schema = path + ".json"
    with open(path + ".events", "w", encoding=encoding) as f:
        f.write(events if isinstance(events, str) else "\n".join(events) + "\n")
    subprocess.run([MAKE_TRACE, schema, path + ".events", path + ".sonde", *families], check=True)
    return path + ".sonde"

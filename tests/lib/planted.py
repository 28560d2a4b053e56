# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces that are made from lines of text, with a planted cause, and what reports find in them."""
import json
import os
import subprocess

from sonde_cli import make_trace

ROOT, SONDE = os.environ["ROOT"], os.environ["SONDE"]
GOLDEN = os.path.join(ROOT, "tests", "golden")


def say(*args):
    return subprocess.run([SONDE, *args], capture_output=True, text=True, check=True).stdout


def make(folder, name, lines, schema, *families):
    """A trace of these events; schema is a file, by default of tests/golden/"""
    return make_trace(os.path.join(folder, name), lines, os.path.join(GOLDEN, schema), *families)


def written(folder, name, lines, schema, *families):
    """A trace of these events, and the findings of its summary"""
    path = make(folder, name, lines, schema, *families)
    return path, json.loads(say("report", path, "--format", "json"))["findings"]


def merged_schema(folder):
    """The families of several traces in one schema"""
    merged = {"families": {}, "options": {}, "enums": {}, "events": {}}
    for name in ("idle", "os", "disk"):
        with open(os.path.join(GOLDEN, name + ".schema.json")) as f:
            for part, values in json.load(f).items():
                for value in values:
                    merged[part].setdefault(value.get("name", str(value)), value)
    off = merged["events"]["sample_off"]
    wake = {**off, "name": "sample_wake", "id": off["id"] + 2, "fields": [f for f in off["fields"] if f["name"] != "start" and f["offset"] < 24],
            "size": 24}
    of_wake = ("since", "futex", "lock", "stack", "woken_pid", "woken_tid", "how", "value")
    for event, fields in ((off, ("futex", "lock", "file")), (merged["events"]["sched_run"], ("allowed", "priority")),
                          (merged["events"]["sample_cpu"], ("in_call",)), (wake, of_wake)):
        for name in fields:
            at = event["size"] = (event["size"] + 7) // 8 * 8
            event["fields"].append({"name": name, "type": "unsigned", "size": 8, "offset": at})
            event["size"] += 8
    merged["events"]["sample_wake"] = wake
    tasks = ("period", "object", "stack", "holder", "tasks", "begun", "all", "serves", "last", "peer_high", "peer_low", "peer_port")
    merged["events"]["sample_tasks"] = {**off, "name": "sample_tasks", "id": off["id"] + 3, "size": 24 + 8 * len(tasks), "fields": [
        f for f in off["fields"] if f["name"] != "start" and f["offset"] < 24] + [
        {"name": name, "type": "unsigned", "size": 8, "offset": 24 + 8 * i} for i, name in enumerate(tasks)]}
    collection = {**off, "name": "python_gc", "id": 0x0b01, "size": 64, "fields": [f for f in off["fields"] if f["offset"] < 32] + [
        {"name": name, "type": "signed", "size": 8, "offset": 32 + 8 * i} for i, name in enumerate(("collected", "uncollectable", "generation"))] + [
        {"name": "stack", "type": "unsigned", "size": 8, "offset": 56, "unit": "stack"}]}
    merged["events"]["python_gc"] = collection
    throttle = merged["events"]["sched_throttle"]
    merged["events"]["sched_memory"] = {**throttle, "name": "sched_memory", "id": throttle["id"] + 1, "size": 48, "fields": [
        f for f in throttle["fields"] if f["offset"] < 32] + [{"name": name, "type": "unsigned", "size": 8, "offset": offset}
                                                               for name, offset in (("limit", 32), ("reached", 40))] + [
        {"name": "cgroup", "type": "tail", "size": 0, "offset": 48}]}
    other = {**throttle, "name": "sched_other", "id": throttle["id"] + 2, "size": 64, "fields": [f for f in throttle["fields"] if f["offset"] < 32]}
    other["fields"] += [{"name": "ran", "type": "unsigned", "size": 8, "offset": 32, "unit": "ns"}, {"name": "other_pid", "type": "unsigned", "size": 4,
                        "offset": 40, "unit": "task"}, {"name": "comm", "type": "text", "size": 16, "offset": 48}]
    merged["events"]["sched_other"] = other
    # the other ends of connections, and their titles
    head = [f for f in throttle["fields"] if f["offset"] < 24]
    file, end = merged["events"]["syscall_file"], {"name": "other_end", "type": "unsigned", "size": 8}
    file["size"], fields = 96, [f for f in file["fields"] if f["name"] != "path"]
    file["fields"] = [*fields, {**end, "offset": 88}, {"name": "path", "type": "tail", "size": 0, "offset": 96}]
    merged["events"]["syscall_peer"] = {**throttle, "name": "syscall_peer", "id": 0x0705, "size": 48, "fields": [
        *head, {**end, "offset": 24}, {"name": "comm", "type": "text", "size": 16, "offset": 32}]}
    merged["events"]["syscall_title"] = {**throttle, "name": "syscall_title", "id": 0x0706, "size": 24, "fields": [
        *head, {"name": "text", "type": "tail", "size": 0, "offset": 24}]}
    # a call of a library that no family of sonde's own records
    merged["events"]["tiny_work"] = {**off, "name": "tiny_work", "id": 0x3f01}
    merged["families"].setdefault("python", {"id": 11, "name": "python", "doc": "", "default": False})
    path = os.path.join(folder, "merged.schema.json")
    with open(path, "w") as f:
        json.dump({part: list(values.values()) for part, values in merged.items()}, f)
    return path


def first_of(found, **fields):
    return next((f for f in found if all(f.get(k) == v for k, v in fields.items())), {})


END = "meta_end time=@8 reason=END_SIGNAL"


def process(pid, comm, command=""):
    """The lines of a process that was there when tracing began"""
    lines = [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="{comm}"']
    return lines + ([f'proc_image time=@0 pid={pid} tid={pid} exe="/usr/bin/python3" command="{command}"'] if command else [])


def code(number, *functions):
    """A stack: functions from the outermost to the innermost, each "name file line"; "name file" is native. Its frame is the last"""
    lines, caller = [], 0
    for i, function in enumerate(functions):
        name, file, *line = function.split(" ")
        kind, frame = ("FRAME_PYTHON" if line else "FRAME_NATIVE"), 100 * number + i
        lines += [f'meta_code time=@0 code={frame} name="{name}" file="{file}" line={line[0] if line else 0} kind={kind}',
                  f"meta_frame time=@0 frame={frame} caller={caller} code={frame} line={line[0] if line else 0} kind={kind}"]
        caller = frame
    return lines, caller


def off(pid, tid, start, wake, end, state, waker=0):
    by = f"waker_pid={waker} waker_tid={waker} waker=WAKER_THREAD" if waker else ""
    return f"sched_off pid={pid} tid={tid} start=@{start:.6f} time=@{end:.6f} wake=@{wake:.6f} state={state} {by}"


def off_stack(pid, tid, start, end, stack, call, reason="SAMPLE_OTHER"):
    return f"sample_off pid={pid} tid={tid} start=@{start:.6f} time=@{end:.6f} stack={stack} in_call=1 nr={call} reason={reason}"


def run(pid, tid, start, end, **fields):
    fields = " ".join(f"{k}={v}" for k, v in {"state": "SCHED_SLEEP", **fields}.items())
    return f"sched_run pid={pid} tid={tid} start=@{start:.6f} time=@{end:.6f} {fields}"


def findings(folder, *lines):
    return written(folder, "planted", [*lines, END], merged_schema(folder), "proc,sched,gil,sample")[1]

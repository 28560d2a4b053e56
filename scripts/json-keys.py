#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""json-keys.py BUILD: prints docs/json.md: every key of every report's and command's JSON, from the columns in user/.

`make docs` writes it. `json-keys.py BUILD --check` says whether it is stale, for `make lint`; tests/e2e/test_json_keys.py compares what
the reports print with it.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, "docs/json.md")
HEAD = """# Keys of JSON and CSV

Made from the columns in `user/` by `make docs`. `--format json` of a report and of `list`, `info`, `doctor` and `dump` is one object.
One key has one meaning in all of them, and its unit is in its name: `_ns` nanoseconds, `_bytes` bytes, `_percent` 0 to 100.
A value that is not known is null in JSON and empty in CSV. Numbers are written in full, past 2^53 too.

A mean (`avg_ns`) is the time divided by the number of calls with a duration. Calls without a duration count in `untimed`, and not in
`calls`, except in `nccl-api`, where `calls` has both. A row of table `causes` sums over the threads that spent at least a twentieth
of their time on the cause, and at least a quarter of the share that these threads spent together. Its `cause` is the `kind` of
findings about the same waits. Earlier versions had keys of their own: `on-cpu` is now `compute`, `network` is `peer`, and `futex` is
`condition` or, by the stack, another kind; waits that were `idle`, `library` or `asleep` may have a kind of their own, such as
`child`, `gpu-wait` or `stopped`.

CSV is a list of tables. Each table follows a line `# NAME` and begins with a line of keys. All other lines that begin with `#` are for
people: `# finding: ..`, `# note: ..`, and what is lost. To read one table, read from its name to the next `#`.

## The object

| Key | Type | What it is |
|---|---|---|
"""
# Keys of every report: user/output/json.c and user/report/origin.c
OBJECT = {
    "report": ("text", "the report's or command's name"),
    "trace": ("object", "which trace it is of"),
    "file": ("text", "of `trace`: its path as given; of `code`, a `counterpart` and `activity_code`: the source file"),
    "hostname": ("text", "of `trace`: the recorded machine"),
    "machine_id": ("text", "of `trace`: its /etc/machine-id"),
    "boot_id": ("text", "of `trace`: its boot"),
    "kernel": ("text", "of `trace`: its release"),
    "arch": ("text", "of `trace`: its architecture"),
    "cpus": ("integer", "of `trace`: how many CPUs it had"),
    "sonde_version": ("text", "of `trace`: what recorded it"),
    "command": ("text", "of `trace`: the command line that recorded it"),
    "families": ("text", "of `trace`: the families that were recorded"),
    "start_date": ("text", "of `trace`: its start as local time"),
    "start_realtime_ns": ("integer", "of `trace`: its start, CLOCK_REALTIME"),
    "start_ns": ("integer", "of `trace`: its start, CLOCK_MONOTONIC; `--time` counts from it"),
    "first_ns": ("integer", "of `trace`: its first event, CLOCK_MONOTONIC; of a loss: the first lost one"),
    "last_ns": ("integer", "of `trace`: its last event, CLOCK_MONOTONIC; of a loss: the last lost one"),
    "events": ("integer", "of `trace`: how many it has"),
    "cut_off": ("boolean", "of `trace`: the recording did not end as it should"),
    "being_recorded": ("boolean", "of `trace`: it is still written; missing where it is not"),
    "damaged": ("boolean", "of `trace`: some chunks could not be read"),
    "from_ns": ("integer", "of `trace`: where the selected time begins, CLOCK_MONOTONIC"),
    "to_ns": ("integer", "of `trace`: where the selected time ends, CLOCK_MONOTONIC"),
    "traced_ns": ("integer", "of `trace`: how much of the selected time was traced"),
    "unmeasured_ns": ("integer", "of `trace`: the part of `traced_ns` that `record --cost-limit` left out of sched and sample; missing if there is none"),
    "only_pids": ("list of integers", "of `trace`: the processes that `-p` selects; missing without it"),
    "only_tid": ("integer", "of `trace`: the thread that `--tid` selects; missing without it"),
    "losses": ("list of objects", "what the trace lacks"),
    "family": ("text", "of a loss, of a refused program: its family"),
    "reason": ("text", "of a loss: why"),
    "count": ("integer", "of a loss: how many events"),
    "path": ("text", "of a loss: the file that it concerns"),
    "share_percent": ("number", "of a loss: at most this part of the events of its kind; of a finding: `lost_ns` of `wall_ns`; "
                      "of a `counterpart`: its part of `lost_ns`"),
    "changes": ("text", "of a loss: what it changes in figures"),
    "refused_programs": ("list of objects", "BPF programs that the kernel refused; missing where there are none"),
    "program": ("text", "of a refused program: its name"),
    "why": ("text", "of a refused program: what the kernel said"),
    "lacks": ("text", "of a refused program: what the trace lacks without it"),
    "family_off": ("boolean", "of a refused program: the family recorded nothing"),
    "warnings": ("list of texts", "what the recording could not read, examine or attach; missing where there are none"),
    "findings": ("list of objects", "sentences before the tables"),
    "text": ("text", "of a finding: all in one line"),
    "headline": ("text", "of a finding: who lost how much time, in which code, for what"),
    "kind": ("text", "of a finding of the summary: its cause, of a closed list (`gil`, `lock`, `disk`, ..)"),
    "pid": ("integer", "of a finding: the process that lost time; of its `counterpart`: the one that made it wait"),
    "tid": ("integer", "of a finding: the thread, where it is a single one"),
    "device": ("integer", "of a finding about the time of a GPU, not of threads: the GPU's number in the process"),
    "process": ("text", "of a finding, of its `counterpart`: the process's name"),
    "processes": ("integer", "of a finding: how many lost time"),
    "threads": ("integer", "of a finding: how many lost time"),
    "lost_ns": ("integer", "of a finding: the time that these threads lost, summed"),
    "wall_ns": ("integer", "of a finding: the time that these threads were there, summed"),
    "times": ("integer", "of a finding: how often they waited"),
    "call": ("text", "of a finding: the call that most of this time was spent in"),
    "call_ns": ("integer", "of a finding: the time in this call"),
    "call_times": ("integer", "of a finding: how often they waited in this call"),
    "code": ("object", "of a finding: the user's code that lost the time"),
    "function": ("text", "of `code`, of a `counterpart`, of `activity_code`: function"),
    "line": ("integer", "of `code`, of a `counterpart`, of `activity_code`: line in `file`"),
    "source": ("text", "of the same: the text of this line without indentation, cut after 200 bytes; null: it is not in the trace"),
    "caller": ("text", "of `code`, of a `counterpart`: the code of another file that called the function for at least half of this time"),
    "native": ("text", "of a finding, of a `counterpart`: the native function that this code was in"),
    "object": ("text", "of a finding: what was waited for: a file, a peer, a lock"),
    "counterpart": ("object", "of a finding: the thread or process that made it wait, with its code"),
    "activity": ("text", "of a `counterpart`: what it did meanwhile"),
    "activity_code": ("object", "of a finding: the code that `activity` names"),
    "evidence": ("list of texts", "of a finding: what shows it: calls, holders, other figures"),
    "next": ("text", "of a finding: a command line that shows more"),
    "confidence": ("text", "of a finding: `measured`, `attributed` (by samples, stacks, wakers) or `guessed`"),
    "advice": ("text", "of a finding: what to do, or what to record"),
    "figures": ("object", "of a finding: the figures that it states, by keys of the table below"),
    "notes": ("list of texts", "sentences behind the tables"),
    "tables": ("object", "by name a list of rows, each an object with keys of the table below"),
}
TYPES = {"U64": "integer", "S64": "integer", "DOUBLE": "number", "DBL": "number", "TEXT": "text"}
STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
COLUMN = re.compile(rf'\{{\s*{STRINGS},\s*{STRINGS},\s*VALUE_(\w+),\s*SHOW_(\w+)')
FIGURE = re.compile(r'FIGURE\(\s*"([a-z0-9_]+)",\s*[^"]*?V_(\w+)\(')
WRITTEN = re.compile(r'(?:json_writer__\w+|add_clause)\(&?w, "([a-z0-9_]+)"')


def unit(key, shows):
    for ending, name in (("_ns", "ns"), ("_bytes", "bytes"), ("_percent", "%"), ("bytes_per_s", "bytes/s"), ("_flop", "FLOP"),
                         ("_flop_per_s", "FLOP/s")):
        if key.endswith(ending) or key == ending[1:]:
            return name + (" since the trace's start" if "SECONDS" in shows else "")
    return ""


def joined(strings):
    """The text of adjacent string literals"""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace('\\"', '"')


def preprocessed(path, build):
    """The preprocessed file without its includes"""
    argv = [os.environ.get("CC", "cc"), "-E", "-w", "-D_GNU_SOURCE", "-DSONDE_VERSION=\"\"", "-Iuser", "-Ibpf", f"-I{build}/gen", path]
    out = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    own, lines = False, []
    for line in out.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            own = marker[1] == path or "/report/" in marker[1]
        elif own:
            lines.append(line)
    return "\n".join(lines)


def keys(build):
    """{key: (types, shows, meanings, files)}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "user/*/**/*.[ch]"), recursive=True)):
        with open(path) as f:
            text = f.read()
        # macros define some of the columns
        plain = preprocessed(path, build) if "struct column" in text and path.endswith(".c") else ""
        rows = [(joined(m[1]), joined(m[2]), m[3], m[4]) for m in COLUMN.finditer(plain)]
        rows += [(m[1], "", m[2], "") for m in FIGURE.finditer(text)]
        for key, heading, kind, show in rows:
            types, shows, meanings, files = found.setdefault(key, (set(), set(), {}, set()))
            types.add(TYPES[kind])
            shows.add(show)
            if heading:
                meanings.setdefault(heading)
            files.add(os.path.splitext(os.path.basename(path))[0])
    return found


def written():
    """The keys that the code writes outside of tables"""
    found = set()
    for path in ("user/output/json.c", "user/report/origin.c"):
        with open(os.path.join(ROOT, path)) as f:
            found |= set(WRITTEN.findall(f.read()))
    with open(os.path.join(ROOT, "user/findings/findings_output.c")) as f:
        for key in re.findall(r'FIELD\("([a-z_.]+)"', f.read()):
            found |= set(key.split("."))
    return found


def document(build):
    lines = [f"| `{key}` | {kind} | {meaning} |" for key, (kind, meaning) in OBJECT.items()]
    lines += ["", "## Rows and figures", "",
              "The meaning is the column's heading where people read it; a key that only findings state has none.", "",
              "| Key | Type | Unit | What it is | In |", "|---|---|---|---|---|"]
    for key, (types, shows, meanings, files) in sorted(keys(build).items()):
        meaning = "; ".join(m.replace("|", "\\|") for m in sorted(meanings))
        lines.append(f"| `{key}` | {', '.join(sorted(types))} | {unit(key, shows)} | {meaning} | {', '.join(sorted(files))} |")
    return HEAD + "\n".join(lines) + "\n"


def main():
    if written() != set(OBJECT):
        sys.exit(f"{sys.argv[0]}: OBJECT has not what the code writes: {sorted(written() ^ set(OBJECT))}")
    text = document(os.path.abspath(sys.argv[1]))
    if sys.argv[2:] != ["--check"]:
        print(text, end="")
        return
    with open(DOC) as f:
        if f.read() != text:
            sys.exit("docs/json.md is stale: `make docs` writes it")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Rules on libraries from --rules and from a folder: which count, and what is said about wrong ones. The folder has to be root's."""
import json
import os
import re
import subprocess
import tempfile

SONDE = os.environ["SONDE"]
from planted import END, code, make, merged_schema, off, off_stack, process, run
from tap import done, ok, skip

SITE = "/srv/venv/lib/python3.11/site-packages"
RULE = "/jobs/wire.py take = {kind}\n\ttest /x/jobs/wire.py Wire.take\n"


def trace(folder, name, *functions):
    """A thread waits with this stack"""
    stack, frame = code(1, *functions)
    lines = [*process(10, "a"), *stack]
    for i in range(30):
        at = 0.5 + i * 0.2
        lines += [off(10, 11, at, at + 0.15, at + 0.15, "SCHED_SLEEP", 10), run(10, 11, at + 0.15, at + 0.2),
                  off_stack(10, 11, at, at + 0.15, frame, "SYS_futex", "SAMPLE_LOCK") + " futex=77"]
    return make(folder, name, [*lines, END], merged_schema(folder), "proc,sched,gil,sample")


def write(path, text, mode=0o644):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def sonde(*words, rules_d="/nonexistent"):
    return subprocess.run([SONDE, *words], capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ, SONDE_RULES=rules_d))


def kinds(path, *options, rules_d="/nonexistent"):
    """The kinds of the findings about waits, and what was printed to stderr"""
    p = sonde("report", path, "--format", "json", *options, rules_d=rules_d)
    return {f["kind"] for f in json.loads(p.stdout)["findings"] if f.get("kind") not in ("compute", "cpu", None)}, p.stderr


def check_option(folder, path):
    peer, child = (write(os.path.join(folder, kind + ".rules"), RULE.format(kind=kind)) for kind in ("peer", "child"))
    ok(not kinds(path)[0], "without a rule the wait is idleness", kinds(path))
    ok(kinds(path, "--rules", peer) == ({"peer"}, ""), "with a rule it is what the rule states", kinds(path, "--rules", peer))
    ok(kinds(path, "--rules", child, "--rules", peer)[0] == {"child"}, "the first of two files counts", kinds(path, "--rules", child, "--rules", peer))
    p = sonde("diff", path, path, "--rules", peer)
    ok(p.returncode == 0, "diff takes rules", p.stderr)
    texts = [sonde("export", path, "--to", "perfetto", "-f", "-o", os.path.join(folder, "x.pftrace"), *rules).returncode for rules in ((), ("--rules", peer))]
    ok(texts == [0, 0], "export takes rules", texts)
    p = sonde("record", "--rules", os.path.join(folder, "none.rules"), "--report", "-d", "1")
    ok(p.returncode == 2 and "none.rules: No such file" in p.stderr, "record takes rules, and a missing file is an error", p.stderr)
    p = sonde("why", "--rules", os.path.join(folder, "none.rules"), "1")
    ok(p.returncode == 2 and "none.rules: No such file" in p.stderr, "so does why", p.stderr)


def check_guide(folder):
    """docs/adding-a-rule.md: its rules decide on its stack as it states"""
    with open(os.path.join(os.environ["ROOT"], "docs", "adding-a-rule.md")) as f:
        blocks = dict(re.findall(r"```(rules|stack)\n(.*?)```", f.read(), re.S))
    path = trace(folder, "guide", *(" ".join(line.split()) + " 7" for line in blocks["stack"].splitlines()))
    guide = write(os.path.join(folder, "guide.rules"), blocks["rules"])
    found = kinds(path)[0], kinds(path, "--rules", guide)
    ok(found == (set(), ({"peer"}, "")), "the guide's stack is idle without its rules, and waits for a peer with them", found)


def check_errors(folder, path):
    bad = os.path.join(folder, "bad.rules")
    for text, said in (("\n/jobs/wire.py take = late\n", f"{bad}:2: waits have no kind 'late'"),
                       (RULE.format(kind="peer") + "\ttest /x/jobs/wire.py Wire.give\n", f"{bad}:3: the test fails"),
                       ("#" * 300_000, f"{bad}: more than 256 KiB"), ("/a.py = idle\0\n", f"{bad}: Invalid")):
        write(bad, text)
        p = sonde("report", path, "--rules", bad)
        ok(p.returncode == 2 and said in p.stderr and not p.stdout, f"an error with exit status 2: {said.split('/')[-1]}", p.stderr)
    p = sonde("report", path, "--rules", folder)
    ok(p.returncode == 2 and "Invalid argument" in p.stderr, "a folder is no file of rules", p.stderr)


def check_folder(folder, path):
    if os.geteuid():
        skip("rules in a folder of root", "needs root")
        return
    rules_d = os.path.join(folder, "rules.d")
    os.mkdir(rules_d, 0o755)
    write(os.path.join(rules_d, "20.rules"), RULE.format(kind="peer"))
    write(os.path.join(rules_d, "30.rules"), RULE.format(kind="child"))
    write(os.path.join(rules_d, "10.rules~"), "no rule\n")
    ok(kinds(path, rules_d=rules_d) == ({"peer"}, ""), "files of the folder count by their names", kinds(path, rules_d=rules_d))
    result = write(os.path.join(folder, "result.rules"), RULE.format(kind="child"))
    ok(kinds(path, "--rules", result, rules_d=rules_d)[0] == {"child"}, "those of --rules precede", kinds(path, "--rules", result, rules_d=rules_d))
    write(os.path.join(rules_d, "10.rules"), RULE.format(kind="peer") + "nonsense\n")
    found, said = kinds(path, rules_d=rules_d)
    ok(found == {"peer"} and f"{rules_d}/10.rules:3: this is not FILE" in said and "its rules are not used" in said, "a wrong file is left out with a warning",
       said)
    os.unlink(os.path.join(rules_d, "10.rules"))
    os.chmod(os.path.join(rules_d, "20.rules"), 0o664)
    found, said = kinds(path, rules_d=rules_d)
    ok(found == {"child"} and "20.rules can be written by other users" in said, "so is one that others can write", said)
    os.chown(os.path.join(rules_d, "20.rules"), 12345, 0)
    os.chmod(os.path.join(rules_d, "20.rules"), 0o644)
    os.unlink(os.path.join(rules_d, "30.rules"))
    os.symlink(result, os.path.join(rules_d, "30.rules"))
    found, said = kinds(path, rules_d=rules_d)
    ok(not found and "20.rules can be written by other users" in said and "30.rules: Too many" in said, "and those of another owner, and links", said)
    os.chown(rules_d, 12345, 0)
    found, said = kinds(path, rules_d=rules_d)
    ok(not found and f"{rules_d} can be written by other users" in said and "20.rules" not in said, "a folder of another owner is not read", said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_guide(folder)
        path = trace(folder, "planted", "main /app/a.py 7", f"Wire.take {SITE}/jobs/wire.py 9", "Queue.get /usr/lib/python3.11/queue.py 171")
        for check in (check_option, check_errors, check_folder):
            check(folder, path)
    done()


main()

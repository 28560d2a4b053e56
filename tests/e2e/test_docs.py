#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""The docs match the program: generated tables, links, commands and printed output."""
import difflib
import glob
import json
import os
import re
import shlex
import subprocess
import tempfile

from puppet import ROOT, SONDE
from tap import done, ok

os.chdir(ROOT)
DOCS = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md"))]


def text_of(path):
    with open(path) as f:
        return f.read()


def say(*argv):
    return subprocess.run([SONDE, *argv], capture_output=True, text=True, check=True).stdout


def names(what):
    return {row.get("name") or row.get("option") for row in json.loads(say("list", what, "--format", "json"))["tables"][what]}


def events():
    made = subprocess.run(["scripts/doc-tables.py", SONDE], capture_output=True, text=True, check=True).stdout
    diff = list(difflib.unified_diff(text_of("docs/events.md").splitlines(), made.splitlines(), "docs/events.md", "made", lineterm=""))
    ok(not diff, "docs/events.md is what `make docs` writes", "\n".join(diff[:20]))


def anchors(path):
    """The anchors that GitHub gives the headings of a page"""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", text_of(path), re.M)}


def links():
    broken = []
    for path in DOCS:
        # a link, not code that looks like one
        plain = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(path), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", plain):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            file = os.path.join(os.path.dirname(path), file) if file else path
            if not os.path.exists(file) or (anchor and anchor not in anchors(file)):
                broken.append(f"{path}: {target}")
    ok(not broken, "every file and heading that a document links to exists", "\n".join(broken))
    # paths that a sentence mentions
    broken = [f"{path}: {name}" for path in DOCS for name in re.findall(r"`((?:docs|tests|scripts|user|bpf)/[\w./-]+\w)`", text_of(path))
              if not glob.glob(name) and not glob.glob(name + "*") and "FAMILY" not in name and "NAME" not in name]
    ok(not broken, "every path that a document names exists", "\n".join(broken))


def environment():
    """docs/security.md lists exactly the variables of the environment that the sources read, and a release has no switches for tests."""
    source = "".join(text_of(path) for path in glob.glob("user/**/*.c", recursive=True))
    read = set(re.findall(r'\bsecure_getenv\("(\w+)"\)', source))
    section = re.search(r"\n## The environment\n(.*?)\n## ", text_of("docs/security.md"), re.S)[1]
    listed = set(re.findall(r"`([A-Z_0-9]+)`", "".join(re.findall(r"^\| (.*?) \|", section, re.M))))
    ok(len(re.findall(r'getenv\("', source)) == len(re.findall(r'secure_getenv\("', source)) and read == listed,
       f"docs/security.md has the {len(read)} variables of the environment", read ^ listed)
    with open("build/sonde", "rb") as release, open(SONDE, "rb") as tested:
        found = [b"SONDE_TEST" in f.read() for f in (release, tested)]
    ok(found == [False, True], "build/sonde has no switches for tests", found)


def switches():
    """docs/test-switches.md lists exactly the switches of SONDE_TEST that the sources use."""
    used = {"captured"}
    for path in glob.glob("user/**/*.c", recursive=True) + glob.glob("bpf/**/*.c", recursive=True):
        used.update(re.findall(r'(?:test_switch__\w+|session__test_switch)\("([\w-]+)"', text_of(path)))
    listed = set(re.findall(r"^\| `([\w-]+)[^`]*` \|", text_of("docs/test-switches.md"), re.M))
    ok(used == listed, f"docs/test-switches.md has the {len(used)} test switches", used ^ listed)


def tests():
    """docs/tests.md lists exactly the tests that there are."""
    there = {re.sub(r"^tests/(probes|e2e)/|\.\w+$", "", p) for p in glob.glob("tests/probes/*/test_*") + glob.glob("tests/e2e/test_*")}
    listed = set(re.findall(r"^\| `([\w/]+)` \|", text_of("docs/tests.md"), re.M))
    ok(there == listed, f"docs/tests.md has the {len(there)} tests", there ^ listed)


def cases():
    """docs/cases.md is what scripts/case-table.py makes of the tests in tests/cases/."""
    made = subprocess.run(["scripts/case-table.py"], capture_output=True, text=True, check=True).stdout
    ok(made == text_of("docs/cases.md"), "docs/cases.md is up to date", "make docs writes it")


def event_path():
    """docs/design.md follows one event from file to file: every file of its table exists and contains the names in its row."""
    section = re.search(r"## One event, file by file\n(.*?)\n## ", text_of("docs/design.md"), re.S)[1]
    rows = re.findall(r"^\| (?!step|---)(.*) \| (.*) \|$", section, re.M)
    named = [re.findall(r"`([\w./-]+\.[ch])`", files) for _, files in rows]
    missing = [f for files in named for f in files if not os.path.isfile(f)]
    ok(len(rows) > 12 and all(named) and not missing, f"every file on an event's path exists ({len(sum(named, []))})", missing)
    # `struct cuda_launch`, `emit()`
    absent = [f"{name}: {files}" for (_, cell), files in zip(rows, named) for name in re.findall(r"\(`(?:struct )?(\w+)(?:\(\))?`\)", cell)
              if not any(re.search(rf"\b{name}\b", text_of(f)) for f in files)]
    ok(not absent, "and they contain the names in the table", absent)


def examples():
    """The code in a guide is the code that tests build: of families `tiny` and `torture`."""
    built = " ".join("\n".join(map(text_of, sorted(glob.glob("tests/e2e/new_family/tiny/*") + glob.glob("tests/e2e/placed/torture/*.[ch]")))).split())
    for path in sorted(set(glob.glob("docs/adding-*.md")) - {"docs/adding-a-rule.md"}):
        blocks = re.findall(r"```c\n(.*?)```", text_of(path), flags=re.S)
        parts = [part for block in blocks for part in block.split("\n\n") if ".summary" not in part]
        # an example may omit the lines that another guide adds
        without = built.replace(".summary = 5, ", "").replace("add_finding(&r, out); ", "")
        differing = [part for part in parts if not any(" ".join(part.split()) in text for text in (built, without))]
        ok(parts and not differing, f"{path}: its examples are code that a test builds", "\n".join(differing))


def rules():
    """The program reads the rules on libraries that the guide shows, which runs their tests."""
    blocks = re.findall(r"```rules\n(.*?)```", text_of("docs/adding-a-rule.md"), flags=re.S)
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
        f.write("".join(blocks))
        f.flush()
        p = subprocess.run([SONDE, "report", "docs/demo/demo.sonde", "losses", "--rules", f.name], capture_output=True, text=True, check=False)
    ok(blocks and not p.returncode, "docs/adding-a-rule.md: the program reads its rules", p.stderr)


def commands(path):
    """The lines of code blocks that run sonde, and code within `` in the text."""
    text = text_of(path)
    found = []
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.S | re.M):
        for line in block.splitlines():
            m = re.match(r"(?:\$ )?(?:sudo )?(?:build/)?(sonde [a-z].*)", line)
            # without the comment
            if m:
                found.append(re.split(r"\s+#\s", m[1])[0])
    return found


class Grammar:
    """The commands and options that the program's own help lists."""

    def __init__(self):
        self.commands = set(re.findall(r"^  (\w+) {2,}", say("--help"), re.M))
        self.help = {c: say(c, "--help") for c in self.commands}
        self.options = {c: set(re.findall(r"(?:^|[\s,\[])(--?[a-zA-Z][a-z-]*)", h)) for c, h in self.help.items()}
        self.family_options = {re.split("[= ]", o)[0] for o in names("options")}
        self.words = {w: names(w) for w in ("families", "reports", "formats", "events")}

    def wrong(self, line):
        """Why the program would refuse a command line, or None."""
        words = shlex.split(line)[1:]
        if "|" in words:
            words = words[:words.index("|")]
        command, args = words[0], words[1:]
        if command not in self.commands:
            return f"no command {command}"
        if "--" in args:
            args = args[:args.index("--")]
        for i, word in enumerate(args):
            option = word.split("=")[0]
            alias = option.replace("--osrt", "--syscall")
            if option.startswith("-") and option not in self.options[command] and not (
                    command == "record" and alias in self.family_options):
                return f"no option {option} of {command}"
            before = args[i - 1] if i else ""
            if before in ("-t", "--trace"):
                unknown = set(word.replace("+", "").split(",")) - self.words["families"] - {"osrt"}
                if unknown:
                    return f"no families {unknown}"
            if before == "--to" and word not in self.words["formats"]:
                return f"no format {word}"
            if before == "--event" and word not in self.words["events"]:
                return f"no event {word}"
        if command == "report":
            plain = [w for i, w in enumerate(args) if not w.startswith("-") and not (i and args[i - 1].startswith("-"))]
            # a process, thread or function may follow
            plain = plain[:-1] if len(plain) > 2 and plain[-2] == "why" else plain
            if len(plain) > 1 and plain[-1] not in self.words["reports"] and "." not in plain[-1]:
                return f"no report {plain[-1]}"
        return None


def commands_parse():
    grammar = Grammar()
    # the check itself must be able to fail
    for bad in ("sonde recrod", "sonde record --frobnicate", "sonde record -t cudda", "sonde report a.sonde nothing",
                "sonde export a.sonde --to nothing"):
        if not grammar.wrong(bad):
            ok(False, "the check of commands can fail", bad)
    total, wrong = 0, []
    for path in DOCS:
        for line in commands(path):
            if re.search(r"\.\.|[A-Z]{3}|<", line.replace("PATH", "x")) and path != "README.md":
                continue
            total += 1
            why = grammar.wrong(line)
            if why:
                wrong.append(f"{path}: {line}: {why}")
    ok(not wrong and total > 12, f"every command in the docs is accepted by the program ({total})", "\n".join(wrong))


def output_is_true():
    check = subprocess.run(["scripts/doc-output.py", "--check", SONDE], capture_output=True, text=True, check=False)
    n = int((re.findall(r"^(\d+) blocks$", check.stdout, re.M) or [0])[-1])
    ok(not check.returncode and n > 10, f"the program prints what the docs show ({n} blocks); if not, run `make docs`", check.stdout + check.stderr)


def options_leave_families_theirs():
    """getopt_long accepts a prefix of an option: --net=all would be read as an option --network-x."""
    families = re.findall(r"^(\w+)", say("list", "families").split("\n", 1)[1], re.M)
    options = re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)", say("record", "--help"), re.M)
    taken = [(f, o) for f in families for o in options if o.startswith(f)]
    said = {f: subprocess.run([SONDE, "record", f"--{f}=nonsense"], capture_output=True, text=True, check=False).stderr for f, _ in taken}
    ok(len(families) > 8 and len(options) > 8 and all(f"unknown option --{f}=nonsense" in text for f, text in said.items()),
       "no option of record hides a family's", said)


events()
options_leave_families_theirs()
links()
cases()
event_path()
environment()
switches()
tests()
examples()
rules()
commands_parse()
output_is_true()
done()

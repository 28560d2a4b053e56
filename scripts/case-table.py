#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""case-table.py: docs/cases.md, the table of the programs that go wrong.

A row is a test in tests/cases/, or another live test, that has a line `# case: VERDICT | KNOWN FROM | WHAT FALLS SHORT`, where the verdict is right or
partly; its docstring says what is right. `make docs` writes the table, tests/e2e/test_docs.py says when it is stale.
"""
import ast
import glob
import re

HEAD = """# Programs that go wrong, and what sonde says of them

For engineers who want to know what sonde finds out about a hard case. Each row is a test, of
`tests/cases/` if no folder is named, which runs the program and checks the right answer. Most
cases come from kinds of faults that users of other tools reported in public. *Partly*: the test
checks what is right, and the last column says what falls short.

| case | the right answer | known from | sonde | what falls short |
|---|---|---|---|---|
"""


def row(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if "\n# case: " not in text:
        return ""
    right = " ".join(ast.get_docstring(ast.parse(text)).split())
    verdict, known, short = (part.strip() for part in re.search(r"^# case: (.*)$", text, re.M)[1].split("|"))
    assert verdict in ("right", "partly") and (verdict == "partly") == bool(short), path
    return f"| `{re.sub(r'^tests/(cases/test_)?|[.]py$', '', path)}` | {right} | {known} | {verdict} | {short} |\n"


print(HEAD + "".join(row(path) for path in sorted(glob.glob("tests/*/test_*.py") + glob.glob("tests/probes/*/test_*.py"))), end="")

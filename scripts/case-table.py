#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""case-table.py: docs/cases.md, the table of the programs in tests/cases/ that go wrong.

Each test there begins with a docstring that says what is right, and has a line `# case: VERDICT | KNOWN FROM | WHAT FALLS SHORT`, where the verdict is
right or partly. `make docs` writes the table, tests/e2e/test_docs.py says when it is stale.
"""
import ast
import glob
import os
import re

HEAD = """# Programs that go wrong, and what sonde says of them

For engineers who want to know what sonde finds out about a hard case. Each row is a test in `tests/cases/`, which runs the
program and checks the right answer. Most cases come from kinds of faults that users of other tools reported in public.
*Partly*: the test checks what is right, and the last column says what falls short.

| case | the right answer | known from | sonde | what falls short |
|---|---|---|---|---|
"""


def row(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    right = " ".join(ast.get_docstring(ast.parse(text)).split())
    verdict, known, short = (part.strip() for part in re.search(r"^# case: (.*)$", text, re.M)[1].split("|"))
    assert verdict in ("right", "partly") and (verdict == "partly") == bool(short), path
    return f"| `{re.sub('^test_|.py$', '', os.path.basename(path))}` | {right} | {known} | {verdict} | {short} |\n"


print(HEAD + "".join(row(path) for path in sorted(glob.glob("tests/cases/test_*.py"))), end="")

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints rows of python_tables.h: line tables of the Python that runs it, and what it makes of them itself."""
import dis
import sys

src = '''
def f(a, b=(1,
            2)):
    x = [
        a,
        b
    ]
    if (a and

            b):
        y = {
            1: a,
            2: [i
                for i in b],
        }
    for i in x:
        try:
            g(
                i,
                *b,
            )
        except (ValueError,
                TypeError) as e:
            raise RuntimeError from e
        finally:
            z = 1
    with a as q, \\
            b as r:
        return lambda: (
            q
        )
''' + "\n" * 300 + '''
    return 7
class C:
    def m(self):


        return super().m(
            *[1,
              2])
    x = 1; y = 2

    z = [
        m
    ]
'''
def walk(c):
    yield c
    for k in c.co_consts:
        if hasattr(k, "co_code"):
            for x in walk(k):
                yield x
top = compile(src, "s.py", "exec")
v = sys.version_info
print("/* %d.%d.%d */" % v[:3])
for c in walk(top):
    table = c.co_linetable if v >= (3, 10) else c.co_lnotab
    first = c.co_firstlineno
    lines = []
    if v >= (3, 10):
        for a, b, line in c.co_lines():
            lines.append((a, b, line or 0))
    else:
        starts = list(dis.findlinestarts(c))
        # findlinestarts leaves out starts with the line of the one before
        ends = [s for s, _ in starts[1:]] + [len(c.co_code)]
        for (s, line), e in zip(starts, ends):
            lines.append((s, e, line))
    print("{ 0x%02x%02x, %d, %d, (const u8[]){ %s }, %d, (const struct range[]){ %s } }," % (
        v[0], v[1], first, len(table), ",".join("%d" % x for x in bytearray(table)), len(lines),
        ",".join("{%d,%d,%d}" % row for row in lines)))

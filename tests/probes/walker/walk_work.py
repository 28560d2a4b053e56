# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Makes calls of every kind that Python has, on 3.8 and later: each mark() waits for the GIL, which another
thread holds, and logs its stack and the times before and after.
argv: the log file; "all", "churn" or "short"; seconds
"""
import json
import os
import sys
import threading
import time

LOG = None
STOP = False
now = time.monotonic_ns
NAMED = sys.version_info >= (3, 11)  # code objects have qualified names


def frames(f):
    out = []
    while f:
        c = f.f_code
        out.append([c.co_qualname if NAMED else c.co_name, c.co_filename, f.f_lineno])
        f = f.f_back
    return out


def log(kind, a, b, stack):
    line = json.dumps({"kind": kind, "tid": threading.get_native_id(), "a": a, "b": b, "stack": stack}) + "\n"
    os.write(LOG, line.encode())


def mark(kind, times=3):
    """Logs the times and the stack of each sleep; everything is on the line that sleeps."""
    for _ in range(times):
        s = frames(sys._getframe()); a = now(); time.sleep(0.0005); b = now()
        log(kind, a, b, s)


def spin():
    while not STOP:
        for _ in range(1000):
            sum(range(200))
        # before 3.12 a thread that computes never hears that one of another interpreter waits; and long enough for one
        # that waits to run: else it may be starved for minutes
        time.sleep(0.0001)


def nested():
    def inner():
        def innermost():
            mark("nested")
        innermost()
    inner()


def deep(n, kind):
    if n:
        deep(n - 1, kind)
    else:
        mark(kind, 2)


def generator():
    yield 1
    mark("generator")
    yield 2


def delegating():
    yield from generator()


async def awaited():
    mark("coroutine")
    return 3


async def awaiting():
    return [await awaited() for _ in range(2)]


async def numbers():
    for i in range(2):
        mark("async generator", 1)
        yield i


async def looping():
    return [i async for i in numbers()]


def run(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def decorated(f):
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)
    return wrapper


@decorated
@decorated
def decorated_twice():
    mark("decorator")


class Base:
    def method(self):
        mark("method")

    @classmethod
    def of_class(cls):
        mark("classmethod")

    @staticmethod
    def of_none():
        mark("staticmethod")

    @property
    def value(self):
        mark("property")
        return 1

    def __add__(self, other):
        mark("operator")
        return self

    def __enter__(self):
        mark("with")
        return self

    def __exit__(self, *args):
        mark("with")

    def __del__(self):
        mark("finalizer", 1)


class Derived(Base):
    def method(self):
        super().method()


def lines():
    # each on its own line, and calls that reach over many
    x = [
        mark("line"),
        (lambda:
            mark(
                "line"
            ))(),
    ]
    mark("line") if x else None; y = 1
    if (y and
            mark("line") is None and
            y):
        z = {
            "a": 1,
            "b": mark("line"),
        }
    try:
        raise ValueError(
            mark("line"))
    except ValueError:
        mark("line")
    finally:
        mark("line")
    for _ in (1,
              mark("line")):
        pass
    mark("""
    line
    """.strip()
    )
    return z


def late(x):




    return [





        mark("line far"), x]


def bodies():
    class Body:
        mark("class body")

        class Inner:
            mark("class body")


def exec_code():
    exec("def f():\n\n  mark('exec')\nf()", {"mark": mark})
    exec(compile("\n" * 300 + "mark('exec far')\n", "<made up>", "exec"), {"mark": mark})
    source = "def größe():\n mark('latin')\ndef имя():\n größe()\ndef 𐍈𐍂():\n имя()\n𐍈𐍂()\n"
    for name in ["ascii.py", "größe.py", "имя.py", "𐍈.py", "x" * 3000 + ".py"]:
        exec(compile(source, name, "exec"), {"mark": mark})
    long = "def " + "y" * 2500 + "():\n mark('long')\n" + "y" * 2500 + "()\n"
    exec(compile(long, "long.py", "exec"), {"mark": mark})
    # a line table of several pieces
    exec(compile("\n".join("a%d = %d" % (i, i) for i in range(3000)) + "\nmark('table')\n", "table.py", "exec"),
         {"mark": mark})


def callbacks():
    sorted([2, 1], key=lambda x: mark("sorted", 1) or x)
    list(map(lambda x: mark("map", 1), [1, 2]))
    [mark("comprehension", 1) for _ in range(2)]
    {mark("set comprehension", 1) for _ in range(2)}
    {1: mark("dict comprehension", 1) for _ in range(2)}
    any(mark("generator expression", 1) for _ in range(2))


def everything():
    nested()
    deep(10, "deep 10")
    deep(200, "deep 200")
    deep(400, "deep 400")
    list(generator())
    list(delegating())
    run(awaiting())
    run(looping())
    decorated_twice()
    d = Derived()
    d.method()
    d.of_class()
    d.of_none()
    d.value
    d + d
    with d:
        mark("with")
    del d
    lines()
    late(1)
    bodies()
    exec_code()
    callbacks()


def in_thread(f):
    t = threading.Thread(target=f)
    t.start()
    t.join()


SUB = """
import sys
sys.path[:] = %r
import walk_work
walk_work.sub(%d)
"""


def sub(fd):
    """In a sub-interpreter: from 3.12 on with a GIL of its own, for which a thread of its own contends."""
    global LOG, STOP
    LOG = fd
    t = threading.Thread(target=spin)
    if sys.version_info >= (3, 12):
        t.start()
    mark("sub-interpreter", 20)
    deep(5, "sub-interpreter")
    STOP = True
    if sys.version_info >= (3, 12):
        t.join()


def interpreters():
    try:
        import _interpreters as subs
    except ImportError:
        try:
            import _xxsubinterpreters as subs
        except ImportError:
            return
    for _ in range(3):
        i = subs.create()
        try:
            subs.run_string(i, SUB % (sys.path, LOG))
        finally:
            subs.destroy(i)
        mark("after sub-interpreter")


def churn(seconds, life=0):
    """
    Makes functions, calls them for `life` seconds and forgets them: their code objects' memory is used again and again.
    """
    end = now() + int(seconds * 1e9)
    n = 0
    while now() < end:
        n += 1
        # same length, same shape; other names, lines and files
        source = "%sdef f%06d():\n mark('churn', 1)\ndef g%06d():\n f%06d()\nwhile True:\n g%06d()\n if now() > until:\n  break\n"
        exec(compile(source % ("\n" * (n % 7), n, n, n, n), "made%06d.py" % n, "exec"),
             {"mark": mark, "now": now, "until": now() + int(life * 1e9)})


def short():
    """An interpreter that lives for a moment."""
    nested()
    deep(10, "short")
    callbacks()


def start():
    global LOG
    LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.setrecursionlimit(2000)
    if sys.argv[2] != "short":
        print("ready", flush=True)
        sys.stdin.readline()
    t = threading.Thread(target=spin, daemon=True)
    t.start()
    return t


def main(t):
    global STOP
    if sys.argv[2] == "churn":
        churn(float(sys.argv[3]))
    elif sys.argv[2] == "churn slowly":
        churn(float(sys.argv[3]), 1.5)
    elif sys.argv[2] == "short":
        short()
    else:
        everything()
        in_thread(everything)
        interpreters()
    STOP = True
    t.join()


if __name__ == "__main__":
    THREAD = start()
    for _ in range(5):
        # a stack of one frame
        s = frames(sys._getframe()); a = now(); time.sleep(0.0005); b = now()
        log("module", a, b, s)
    main(THREAD)

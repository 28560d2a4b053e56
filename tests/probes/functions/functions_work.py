# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
functions_work.py ROUNDS [SECONDS]: functions of each kind, and how often each is called.

Runs ROUNDS rounds, after SECONDS or a line on standard input. Prints a JSON object: cProfile's counts of one more round, and whether the
functions are as they were at first. It is printed after a second line, or at once with SECONDS.
"""
import cProfile
import ctypes
import functools
import json
import sys
import threading
import time

THREADS, PER_THREAD, GENERATED = 4, 200, 10


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def fails(n):
    if n % 2:
        raise ValueError(n)
    return n


def catches(n):
    try:
        return fails(n)
    except ValueError:
        return -1
    finally:
        plain(1, 2)


def deep(n):
    if not n:
        raise KeyError(n)
    deep(n - 1)


def plain(a, b=2, *args, c=3, **kwargs):
    return (a, b, args, c, kwargs)


def generate(n):
    for i in range(n):
        yield i


async def coroutine(n):
    return n


def closure(x):
    def inner(y):
        return x + y
    return inner


def loop(n):
    """Begins with the target of a jump"""
    while n:
        n -= 1
        for _ in (1, 2):
            try:
                int("x")
            except ValueError:
                pass
        with lock:
            pass
    return [k + 1 for k in range(3)]


def cell(a):
    def f():
        return a
    return f()


lock = threading.Lock()


class Outer:
    def method(self, n):
        return n

    @staticmethod
    def static(n):
        return n

    @classmethod
    def of_class(cls, n):
        return cls, n

    def __call__(self, n):
        return self.method(n)

    class Inner:
        def __init__(self):
            self.x = 1

        def nested(self):
            return super().__repr__()

        @property
        def prop(self):
            return 1

        def __getitem__(self, i):
            return i


def decorator(f):
    @functools.wraps(f)
    def wrapper(*a):
        return f(*a)
    return wrapper


@decorator
def decorated(n):
    return n


(by_lambda,) = (lambda x: x,)


def in_thread(n):
    return n


def thread():
    for i in range(PER_THREAD):
        in_thread(i)


def work():
    assert fib(12) == 144
    for i in range(100):
        assert catches(i) == (-1 if i % 2 else i)
    try:
        deep(20)
    except KeyError:
        pass
    assert plain(1, 2, 3, c=4, d=5) == (1, 2, (3,), 4, {"d": 5})
    assert plain(*(1, 2, 3), **{"c": 4, "d": 5}) == functools.partial(plain, 1, 2)(3, c=4, d=5)
    assert list(map(by_lambda, range(3))) == sorted(range(3), key=by_lambda) == [0, 1, 2]
    assert list(generate(GENERATED)) == list(range(GENERATED))
    try:
        coroutine(5).send(None)
    except StopIteration as e:
        assert e.value == 5
    assert closure(2)(3) == 5
    assert loop(50) == [1, 2, 3]
    assert cell(7) == 7
    o = Outer()
    for i in range(30):
        assert (o.method(i), Outer.static(i), o.of_class(i), o(i)) == (i, i, (Outer, i), i)
        assert by_lambda(decorated(i)) == i
    for i in range(20):
        inner = Outer.Inner()
        assert "Inner" in inner.nested() and inner[i] == i
    threads = [threading.Thread(target=thread) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


NAMES = """fib fails catches deep plain generate coroutine closure loop cell Outer.method Outer.static Outer.of_class Outer.__call__
    Outer.Inner.__init__ Outer.Inner.nested Outer.Inner.__getitem__ decorated by_lambda in_thread thread work""".split()
REFUSED = ["Outer", "Outer.Inner.prop", "closure.inner", "closure.<locals>.inner", "int", "catches.<lambda>"]
MISSING = ["nothing", "Outer.nothing"]
# raised by each round
EXCEPTIONS = {"fails": 50, "deep": 21}


def function(name):
    at = sys.modules["__main__"]
    for part in name.split("."):
        at = at.__dict__[part]
    return getattr(at, "__func__", at)


def state():
    """The bytes of each function's vectorcall, and its code object"""
    offset = ctypes.c_ssize_t.from_address(id(type(work)) + 7 * 8).value
    return [(ctypes.c_uint64.from_address(id(f) + offset).value, id(f.__code__)) for f in map(function, NAMES)] + [
        sys.getprofile(), sys.gettrace()] + [sys.monitoring.get_tool(i) for i in range(6) if hasattr(sys, "monitoring")]


def counts():
    """cProfile's counts of this thread in one round"""
    profile = cProfile.Profile()
    profile.enable()
    work()
    profile.disable()
    by_code = {e.code: e.callcount for e in profile.getstats() if not isinstance(e.code, str)}
    return {name: by_code.get(function(name).__code__, 0) for name in NAMES}


def main():
    before = state()
    print("ready", flush=True)
    if len(sys.argv) > 2:
        time.sleep(float(sys.argv[2]))
    else:
        sys.stdin.readline()
    for _ in range(int(sys.argv[1])):
        work()
    print("worked", flush=True)
    if len(sys.argv) > 2:
        return
    sys.stdin.readline()
    after = state()
    print(json.dumps([after == before, counts()]), flush=True)


if __name__ == "__main__":
    main()

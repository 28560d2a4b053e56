#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | py-spy, memray: Cython or C calls Python, which calls Cython or C |
"""Native functions are between the Python functions on a stack, `top;outer;mid;inner`; those of the interpreter are not."""
import collections
import glob
import itertools
import os
import subprocess

from case import FOLDER, finish, record, say, script, start
from pip_packages import install
from tap import ok, skip

EXTENSION = script("between.c", r"""
#include <Python.h>
static PyObject *c_inner(PyObject *self, PyObject *n)
{
	volatile double x = 1;
	for (long i = PyLong_AsLong(n); i > 0; i--) x = x * 1.0000001 + 1;
	return PyFloat_FromDouble(x);
}
static PyObject *c_outer(PyObject *self, PyObject *args)
{
	PyObject *f, *n, *r;
	if (!PyArg_ParseTuple(args, "OO", &f, &n) || !(r = PyObject_CallFunctionObjArgs(f, n, NULL))) return NULL;
	Py_DECREF(r);
	Py_RETURN_NONE;
}
static PyMethodDef methods[] = { { "inner", c_inner, METH_O, "" }, { "outer", c_outer, METH_VARARGS, "" }, { 0 } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "between", "", -1, methods };
PyMODINIT_FUNC PyInit_between(void) { return PyModule_Create(&module); }
""")
CYTHON = script("cython/between.pyx", """
def inner(long n):
    cdef double x = 1
    cdef long i
    for i in range(n): x = x * 1.0000001 + 1
    return x
def outer(f, n):
    f(n)
""")
PROGRAM = script("program.py", """
import sys
sys.path.insert(0, sys.argv[1])
import between
N = 20000
def mid(n): between.inner(n)
def above(n): mid(n)
def top(f): between.outer(f, N)
def mapped(): list(map(mid, [N]))
print("ready", flush=True)
while True:
    top(mid)
    top(above)
    mapped()
    mid(N)
""")
def compile_for(python, source, folder):
    """Whether the module could be compiled"""
    ask = "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'))"
    include, suffix = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    command = ["gcc", "-O2", "-g", "-shared", "-fPIC", "-I", include, "-o", f"{folder}/between{suffix}", source]
    return os.path.exists(f"{include}/Python.h") and not subprocess.run(command, capture_output=True, check=False).returncode


def check(name, python, folder):
    program = start(python, PROGRAM, folder, until="ready")
    trace = record("-d", "2", "-F", "199", "-p", program.pid)
    program.kill()
    stacks = collections.Counter()
    for line in say("export", trace, "--to", "folded", "--event", "on-cpu").splitlines():
        stack, _, count = line.rpartition(" ")
        # "__pyx_pw_7between_3outer (between.so)", and the function itself below it
        of_program = [frame.split(" ")[0].rpartition("_")[2].lstrip("0123456789") for frame in stack.split(";")]
        of_program = [name for name, _ in itertools.groupby(of_program) if name in ("top", "outer", "above", "mapped", "mid", "inner")]
        if "inner" in of_program:
            stacks[" ".join(of_program)] += int(count)
    right = {"top outer mid inner", "top outer above mid inner", "mapped mid inner", "mid inner"}
    # 1,536 bytes of stack do not reach through three loops of 3.8
    right |= {"top above mid inner"} if "3.8" in name else set()
    ok("top outer mid inner" in stacks and sum(stacks[stack] for stack in right) > 0.97 * sum(stacks.values()) and len(right & set(stacks)) >= 4,
       f"native functions lie between Python functions, {name}", stacks)


PYTHONS = [path for minor in range(8, 16) for folder in ("/usr/bin", os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin"))
           for path in glob.glob(f"{folder}/python3.{minor}")]
for at, one in enumerate(PYTHONS):
    place = os.path.join(FOLDER, str(at))
    os.mkdir(place)
    if compile_for(one, EXTENSION, place):
        check(one, one, place)
    else:
        skip(one, "it has no header files, or there is no gcc")
venv = os.path.join(FOLDER, "venv", "bin", "python")
if install(venv, "cython") and not subprocess.run([venv, "-m", "cython", "-3", CYTHON], check=False).returncode and \
        compile_for("/usr/bin/python3", CYTHON.replace(".pyx", ".c"), os.path.dirname(CYTHON)):
    check("Cython", "/usr/bin/python3", os.path.dirname(CYTHON))
else:
    skip("Cython", "it can't be installed, or not be used")
finish()

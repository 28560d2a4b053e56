# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""compile_work.py: torch.compile reads the code of functions that are traced, and pickle takes them. Reads a line before each step."""
import copyreg
import pickle
import sys
import types

import torch


def inner(x):
    return torch.sin(x) + 1


def outer(x):
    return inner(x) * 2


def step():
    print(outer.__code__ is original, flush=True)
    sys.stdin.readline()


def code_of(arguments):
    return types.CodeType(*arguments)


def reduced(code):
    """As cloudpickle passes a code object"""
    return code_of, ((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags,
                      code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_filename, code.co_name, code.co_qualname,
                      code.co_firstlineno, code.co_linetable, code.co_exceptiontable, code.co_freevars, code.co_cellvars),)


original = outer.__code__
x = torch.ones(3)
right = outer(x)
step()
copyreg.pickle(types.CodeType, reduced)
copied = pickle.loads(pickle.dumps(outer.__code__))
assert torch.equal(types.FunctionType(copied, globals())(x), right)
step()
compiled = torch.compile(outer, backend="eager", fullgraph=True)
assert torch.equal(compiled(x), right)
step()

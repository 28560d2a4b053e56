# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python with the packages that torch_programs.py uses, in build/real/venv. It shares PyTorch with build/venv."""
import os
import subprocess

import pip_packages
from file_lock import locked

B = os.environ.get("B") or os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build")


def version(python, package):
    """The version of a package that this interpreter has; nothing if it lacks the package"""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def install():
    """The path of the interpreter. What can't be installed is missing."""
    shared, python = (os.path.join(B, folder, "bin/python") for folder in ("venv", "real/venv"))
    with locked(os.path.join(B, "venv")):
        if not pip_packages.has_torch(shared):
            pip_packages.install_torch(shared)
    with locked(os.path.join(B, "real-venv")):
        pip_packages.share(python, shared)
        for packages in (("pillow",), ("transformers", "accelerate"), ("lightning",)):
            pip_packages.install(python, *packages)
        # its own operators are not used, so it need not be of the same build
        pip_packages.install(python, "--no-deps", "torchvision")
    return python

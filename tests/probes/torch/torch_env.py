# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python with PyTorch that the tests of this folder run: build/venv, where it is installed if it is missing."""
import os
import subprocess

from tap import skip_all

B = os.environ.get("B", "build")
VERSION = "2.13.0"


def has_torch(python):
    return os.access(python, os.X_OK) and not subprocess.run([python, "-c", "import torch"], capture_output=True).returncode


def python():
    """The path of an interpreter that has PyTorch; without one the test is skipped."""
    chosen = os.environ.get("SONDE_TORCH_PYTHON", os.path.join(B, "venv/bin/python"))
    if has_torch(chosen):
        return chosen
    if "SONDE_TORCH_PYTHON" not in os.environ:
        if not os.path.exists(chosen):
            subprocess.run(["/usr/bin/python3", "-m", "venv", os.path.join(B, "venv")], capture_output=True)
        pip = [chosen, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        # the variant for CPUs has a fraction of the other's size, but not every index has it
        for package in (f"torch=={VERSION}+cpu", f"torch=={VERSION}"):
            if os.path.exists(chosen) and not subprocess.run([*pip, package, "numpy"], capture_output=True).returncode:
                break
    if not has_torch(chosen):
        skip_all("PyTorch can't be installed")
    return chosen

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Installs packages of the Python Package Index into a virtual environment."""
import os
import subprocess

TORCH = "2.13.0"


def install(python, *packages):
    """Installs the packages for this interpreter, whose virtual environment is created if it is missing. Returns whether it could."""
    if not os.path.exists(python):
        subprocess.run(["/usr/bin/python3", "-m", "venv", os.path.dirname(os.path.dirname(python))], capture_output=True, check=False)
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    return os.path.exists(python) and not subprocess.run(command, capture_output=True, check=False).returncode


def install_torch(python, version=TORCH):
    """Installs PyTorch, if possible its variant for CPUs alone, which has a tenth of the size. Not every index has that variant."""
    return any(install(python, f"torch=={version}{variant}", "numpy") for variant in ("+cpu", ""))


def has_torch(python):
    return os.access(python, os.X_OK) and not subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode

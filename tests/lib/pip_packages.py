# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Installs packages of the Python Package Index into a virtual environment."""
import os
import subprocess

TORCH = "2.13.0"


def create(python):
    """Creates the virtual environment of this interpreter if it is missing."""
    if not os.path.exists(python):
        subprocess.run(["/usr/bin/python3", "-m", "venv", os.path.dirname(os.path.dirname(python))], capture_output=True, check=False)


def install(python, *packages):
    """Installs the packages for this interpreter, whose virtual environment is created if it is missing. Returns whether it could."""
    create(python)
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    return os.path.exists(python) and not subprocess.run(command, capture_output=True, check=False).returncode


def install_torch(python, version=TORCH):
    """Installs PyTorch, if possible its variant for CPUs alone, which has a tenth of the size. Not every index has that variant."""
    return any(install(python, f"torch=={version}{variant}", "numpy") for variant in ("+cpu", ""))


def share(python, other):
    """Lets this interpreter, whose virtual environment is created if it is missing, import what is installed for another of the same version. pip
    counts that as installed."""
    create(python)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folders = [subprocess.run([p, "-c", code], capture_output=True, text=True, check=True).stdout.strip() for p in (python, other)]
    with open(os.path.join(folders[0], "shared.pth"), "w", encoding="utf-8") as f:
        f.write(folders[1] + "\n")


def has_torch(python):
    return os.access(python, os.X_OK) and not subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode

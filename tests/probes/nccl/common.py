# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of family nccl; programs and recordings are those of family cuda."""
import importlib.util
import os

_spec = importlib.util.spec_from_file_location(
    "cuda_common", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cuda/common.py"))
cuda = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cuda)

BUILD, SONDE, Program, directory = cuda.BUILD, cuda.SONDE, cuda.Program, cuda.directory
NCCL = os.environ.get("NCCL", os.path.join(BUILD, "nccl"))
HERE = os.path.join(BUILD, "tests", "probes", "nccl")
FAKE = os.path.join(BUILD, "tests", "fakes", "libnccl.so")
WANTED = ("2.21.5", "2.27.7", "2.32.3")
FAMILY = 5


def library(version):
    """The path of the real library, or None if it could not be downloaded"""
    path = os.path.join(NCCL, version, "lib", "libnccl.so.2")
    return path if os.path.exists(path) else None


class Recording(cuda.Recording):
    def __init__(self, path, *args, **kwargs):
        super().__init__(path, *args, families="nccl", **kwargs)

    def calls(self, pids):
        """{(pid, tid): [call]} in these processes, ordered by start"""
        threads = {}
        for kind in self.trace.head["schema"]["events"]:
            if kind["id"] >> 8 != FAMILY or kind["name"] in ("nccl_communicator", "nccl_library"):
                continue
            for e in self.trace.events(kind["name"]):
                if e["pid"] in pids:
                    threads.setdefault((e["pid"], e["tid"]), []).append(
                        dict(e, event=kind["name"], function=self.names[e["probe"]]))
        for calls in threads.values():
            calls.sort(key=lambda e: (e["start"], -e["time"]))
        return threads

    def libraries(self):
        """{path: nccl_library event, with its reason as text}"""
        strings = {e["string"]: e["text"] for e in self.trace.events("meta_string")}
        return {strings[e["path"]]: dict(e, why=strings.get(e["why"], "")) for e in self.trace.events("nccl_library")}

    def losses(self, *pids):
        """pids: losses of these processes or of no known process"""
        return [e for e in self.trace.events("meta_loss") if e["family"] in (0, FAMILY) and (not pids or e["pid"] in (0, *pids))]

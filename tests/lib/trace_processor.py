# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Calls Perfetto's own trace_processor. Debian's package chromium-shell has it as a library for Chromium's tests
(base/test/test_trace_processor_impl.h). Its three functions are C++, so this module builds their arguments in the
layout of libc++ on 64 bits: a vector is three pointers, a long string is {capacity | 1, size, pointer}. A result is a
vector of rows, which are vectors of strings, followed by a string with the error.
"""
import ctypes
import os
import subprocess

from file_lock import locked

PREFIX = "_ZN4base4test22TestTraceProcessorImpl"


def library():
    """(The library's path, None); the first call unpacks the package into the build directory. (None, reason) if that fails."""
    folder = os.path.join(os.environ["B"], "trace_processor")
    path = os.path.join(folder, "usr/lib/chromium/libtest_trace_processor.so")
    with locked(folder):
        return (path, None) if os.path.exists(path) else unpack(folder, path)


def unpack(folder, path):
    os.makedirs(folder, exist_ok=True)
    try:
        done = subprocess.run("apt-get download -qq chromium-shell && dpkg-deb --fsys-tarfile chromium-shell_*.deb | "
                              "tar x ./usr/lib/chromium/libtest_trace_processor.so; rm -f chromium-shell_*.deb",
                              shell=True, cwd=folder, capture_output=True, text=True, timeout=100)
    except (OSError, subprocess.TimeoutExpired) as e:
        return None, str(e)
    if not os.path.exists(path):
        return None, (done.stderr.strip().splitlines() or ["the package chromium-shell lacks the library"])[-1]
    return path, None


class TraceProcessor:
    """query(sql) returns rows of texts."""

    def __init__(self, path, data):
        self.lib = ctypes.CDLL(path)
        self.object = ctypes.create_string_buffer(1 << 16)
        self._call("C1Ev", self.object)
        room = ctypes.create_string_buffer(data, len(data))
        begin = ctypes.addressof(room)
        vector = (ctypes.c_size_t * 3)(begin, begin + len(data), begin + len(data))
        status = (ctypes.c_size_t * 1)()
        self._call("10ParseTraceERKNSt3__16vectorIcNS2_9allocatorIcEEEE", status, self.object, vector)
        if status[0] > 1:  # absl::Status: OK is 0 or 1, depending on its version
            raise OSError("trace_processor can't read it")

    def _call(self, name, *args):
        prefix = PREFIX.replace("_ZN", "_ZNK") if name.startswith("12") else PREFIX
        function = getattr(self.lib, prefix + name)
        function.restype = None
        function(*[ctypes.byref(a) for a in args])

    @staticmethod
    def _string(at):
        first = ctypes.c_ubyte.from_address(at).value
        if first & 1:
            _, size, data = (ctypes.c_size_t * 3).from_address(at)
            return ctypes.string_at(data, size)
        return ctypes.string_at(at + 1, first >> 1)

    def query(self, sql):
        text = ctypes.create_string_buffer(sql.encode())
        size = len(sql.encode())
        string = (ctypes.c_size_t * 3)((size + 16) & ~1 | 1, size, ctypes.addressof(text))
        result = (ctypes.c_size_t * 16)()
        self._call("12ExecuteQueryERKNSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE", result, self.object, string)
        error = self._string(ctypes.addressof(result) + 24)
        if error:
            raise OSError(f"{sql}: {error.decode()}")
        rows = []
        for row in range(result[0], result[1], 24):
            begin, end, _ = (ctypes.c_size_t * 3).from_address(row)
            rows.append([self._string(cell).decode() for cell in range(begin, end, 24)])
        return rows[1:]  # the first row has the names of the columns

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import struct


def sections(path):
    """Section names of an ELF file."""
    data = open(path, "rb").read()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, n, names = struct.unpack_from("<HHH", data, 0x3a)
    table, = struct.unpack_from("<Q", data, offset + names * size + 0x18)
    for i in range(n):
        at = table + struct.unpack_from("<I", data, offset + i * size)[0]
        yield data[at:data.index(b"\0", at)].decode()

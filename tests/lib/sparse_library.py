# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A library whose tables are larger than sonde reads."""
import struct


def sparse_library(path, size):
    """Writes a sparse ELF file whose symbol and string tables are `size` bytes of zeros each."""
    size -= size % 24
    section = struct.Struct("<IIQQQQIIQQ")
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 1024, 0, 64, 56, 1, 64, 4, 3)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
    head += bytes(1024 - len(head)) + bytes(64)
    head += section.pack(1, 11, 0, 0, 4096, size, 2, 0, 8, 24)  # SHT_DYNSYM
    head += 2 * section.pack(0, 3, 0, 0, 4096 + size, size, 0, 0, 1, 0)  # SHT_STRTAB
    with open(path, "wb") as f:
        f.write(head)
        f.truncate(4096 + 2 * size)

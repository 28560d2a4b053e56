# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads .sonde files. It is written from docs/format.md alone, so that it tests that page and the program against each other.

    from sonde_trace import Trace
    for e in Trace("x.sonde").events("cuda_copy"):
        print(e["time"], e["bytes"])

`python3 sonde_trace.py FILE [FAMILY..]` prints the schema of a trace, of all families or only of core, proc and these.

Checksums are verified where a module for xxHash is installed or verify=True (slow, in Python).
"""
import json
import struct

import zstandard

MAGIC = 0x184D2A5A
CHNK, INDX, INDEX_END = 0x4B4E4843, 0x58444E49, 0x53584453
M64 = (1 << 64) - 1


class Damaged(Exception):
    pass


def _rol(x, r):
    return ((x << r) | (x >> (64 - r))) & M64


P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def _round(acc, lane):
    return _rol((acc + lane * P2) & M64, 31) * P1 & M64


def xxh64_slow(data):
    n, at = len(data), 0
    if n >= 32:
        v = [(P1 + P2) & M64, P2, 0, (-P1) & M64]
        for at in range(0, n - n % 32, 32):
            v = [_round(a, lane) for a, lane in zip(v, struct.unpack_from("<4Q", data, at))]
        at = n - n % 32
        h = (_rol(v[0], 1) + _rol(v[1], 7) + _rol(v[2], 12) + _rol(v[3], 18)) & M64
        for a in v:
            h = ((h ^ _round(0, a)) * P1 + P4) & M64
    else:
        h = P5
    h = (h + n) & M64
    while n - at >= 8:
        h = (_rol(h ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & M64
        at += 8
    if n - at >= 4:
        h = (_rol(h ^ struct.unpack_from("<I", data, at)[0] * P1 & M64, 23) * P2 + P3) & M64
        at += 4
    for byte in data[at:]:
        h = _rol(h ^ byte * P5 & M64, 11) * P1 & M64
    h = (h ^ h >> 33) * P2 & M64
    h = (h ^ h >> 29) * P3 & M64
    return h ^ h >> 32


try:
    import xxhash

    def xxh64(data):
        return xxhash.xxh64_intdigest(data)
    FAST = True
except ImportError:
    xxh64 = xxh64_slow
    FAST = False


def _integer(v):
    return int(v) if isinstance(v, str) else v


class Field:
    def __init__(self, o, enums):
        self.name, self.size, self.type = o["name"], _integer(o["size"]), o["type"]
        self.unit, self.doc = o.get("unit", ""), o.get("doc", "")
        if self.type not in ("unsigned", "signed", "enum", "float", "text", "tail"):
            self.type = "unsigned" if self.size in (1, 2, 4, 8) else "text" if self.size else "tail"
        self.is_text = self.type in ("text", "tail")
        self.width = 4 if self.is_text else self.size
        self.names = {}
        if self.type == "enum":
            self.names = {_integer(v["value"]): v["name"] for v in enums[o["enum"]]}
        self.signed = self.type == "signed" or any(v < 0 for v in self.names)


class Event:
    def __init__(self, o, enums):
        self.id, self.name, self.size = _integer(o["id"]), o["name"], _integer(o["size"])
        self.doc = o.get("doc", "")
        self.fields = [Field(f, enums) for f in o["fields"]]
        names = [f.name for f in self.fields]
        self.is_span = names[7:8] == ["start"]
        self.is_call = names[7:9] == ["start", "ret"]


class Chunk:
    """offset, size, number, first, last and kinds: (id, rows, content, compressed, raw, first, last, hash, offset)"""


class Column:
    def __init__(self, content, at, width):
        self.transform, self.mask, n = struct.unpack_from("<BBH", content, at)
        self.base = int.from_bytes(content[at + 4:at + 4 + width], "little")
        self.width = width
        at += 4 + width
        self.dict = [int.from_bytes(content[at + i * width:at + (i + 1) * width], "little") for i in range(n)]
        self.end = at + n * width

    def read(self, content, at, rows, time):
        """The values, and the offset at which the data ends."""
        fill = self.base if self.transform in (0, 2) else 0
        planes = []
        for i in range(self.width):
            if self.mask >> i & 1:
                planes.append(content[at:at + rows])
                at += rows
            else:
                planes.append(bytes([fill >> 8 * i & 0xff]) * rows)
        if at > len(content):
            raise Damaged("planes pass the content's end")
        joined = bytearray(rows * self.width)
        for i, plane in enumerate(planes):
            joined[i::self.width] = plane
        p = struct.unpack("<%d%s" % (rows, {1: "B", 2: "H", 4: "I", 8: "Q"}[self.width]), joined)
        if self.transform == 0:
            values = list(p)
        elif self.transform == 1:
            values, v = [], self.base
            for x in p:
                v = (v + (x >> 1 ^ -(x & 1))) & M64
                values.append(v)
        elif self.transform == 2:
            values = [(t - x) & M64 for t, x in zip(time, p)]
        elif self.transform == 3:
            values = [self.dict[x] for x in p]
        else:
            raise Damaged("transform %d" % self.transform)
        return values, at


class Trace:
    def __init__(self, path, verify=False):
        with open(path, "rb") as f:
            self.data = f.read()
        self.verify = verify
        self.damaged = []  # what was passed over
        self._read_head()
        self.has_index = False
        self.torn = 0
        self.chunks = self._from_index()
        self.has_index = self.chunks is not None
        if self.chunks is None:
            self.chunks = self._scan()
        self._strings = None

    def _u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def _check(self, data, want):
        return not (self.verify or FAST) or xxh64(data) == want

    def _read_head(self):
        d = self.data
        if len(d) < 18 or self._u32(0) != MAGIC or d[8:14] != b"SONDE\0":
            raise ValueError("not a sonde trace")
        self.major, self.minor = struct.unpack_from("<HH", d, 14)
        if self.major > 1:
            raise ValueError("format version %d" % self.major)
        size, raw, _, digest, own = struct.unpack_from("<IIIQQ", d, 20)
        frame = d[48:48 + size]
        if self._u32(4) != 40 or not self._check(d[8:40], own) or not self._check(frame, digest) or len(frame) < size:
            raise Damaged("head")
        self.head = json.loads(zstandard.ZstdDecompressor().decompress(frame, max_output_size=raw))
        self.body = 48 + size
        self.schema = self.head["schema"]
        enums = {e["name"]: e["values"] for e in self.schema.get("enums", [])}
        self.by_id = {e["id"]: Event(e, enums) for e in self.schema.get("events", [])}
        self.by_name = {e.name: e for e in self.by_id.values()}

    def _chunk(self, at):
        """The chunk at this offset, None if it is cut off. Raises Damaged if the bytes are no chunk."""
        if at + 8 > len(self.data):
            return None
        size = self._u32(at + 4)
        if at + 8 + size > len(self.data):
            return None
        payload = self.data[at + 8:at + 8 + size]
        if size < 48 or struct.unpack_from("<I", payload)[0] != CHNK:
            raise Damaged("no chunk at %d" % at)
        n, number, first, last, body = struct.unpack_from("<IQQQQ", payload, 4)
        if size != 48 + 48 * n or not self._check(payload[:-8], struct.unpack_from("<Q", payload, size - 8)[0]):
            raise Damaged("chunk header at %d" % at)
        if at + 8 + size + body > len(self.data):
            return None
        c = Chunk()
        c.offset, c.size, c.number, c.first, c.last = at, 8 + size + body, number, first, last
        c.kinds, frame = [], at + 8 + size
        for i in range(n):
            ident, _, rows, content, compressed, raw, _, k_first, k_last, digest = struct.unpack_from(
                "<HHIIIIIQQQ", payload, 40 + 48 * i)
            c.kinds.append((ident, rows, content, compressed, raw, k_first, k_last, digest, frame))
            frame += compressed
        if frame != at + c.size:
            raise Damaged("chunk header at %d" % at)
        return c

    def _scan(self):
        chunks, at = [], self.body
        while at < len(self.data):
            if at + 12 > len(self.data):
                break
            magic, size, tag = struct.unpack_from("<III", self.data, at)
            try:
                if magic & ~0xf != 0x184D2A50:
                    raise Damaged("no frame at %d" % at)
                if magic == MAGIC and tag == CHNK:
                    c = self._chunk(at)
                    if c is None:
                        break
                    chunks.append(c)
                    at += c.size
                elif at + 8 + size > len(self.data):
                    break
                else:
                    at += 8 + size
            except Damaged as why:
                self.damaged.append(str(why))
                at = self.data.find(struct.pack("<I", MAGIC), at + 1)
                if at < 0:
                    return chunks
        self.torn = len(self.data) - at
        return chunks

    def _from_index(self):
        size, magic = struct.unpack_from("<II", self.data, len(self.data) - 8)
        if magic != INDEX_END or size > len(self.data) - self.body:
            return None
        at, lists = len(self.data) - size, []
        while at:
            payload = self.data[at + 8:at + 8 + self._u32(at + 4)]
            tag, n, flags, _, before = struct.unpack_from("<IIIIQ", payload)
            if tag != INDX or not self._check(payload[:-16], struct.unpack_from("<Q", payload, len(payload) - 16)[0]):
                return None
            if not lists and not flags & 1:
                return None
            lists.append(self._index_entries(payload, n))
            at = before
        chunks = []
        for offset, entry in (pair for part in reversed(lists) for pair in part):
            try:
                c = self._chunk(offset)
            except Damaged as why:
                self.damaged.append(str(why))
                continue
            if entry != (c.first, c.last, c.size, c.number, [(k[0], k[1], k[3], k[4]) for k in c.kinds]):
                self.damaged.append("index is wrong about the chunk at %d" % offset)
            chunks.append(c)
        return chunks

    @staticmethod
    def _index_entries(payload, n):
        at, out = 24, []
        for _ in range(n):
            offset, first, last, size, kinds, number = struct.unpack_from("<QQQIIQ", payload, at)
            at += 40
            entries = []
            for _ in range(kinds):
                ident, _, rows, compressed, raw = struct.unpack_from("<HHIII", payload, at)
                entries.append((ident, rows, compressed, raw))
                at += 16
            out.append((offset, (first, last, size, number, entries)))
        if at != len(payload) - 16:
            raise Damaged("index")
        return out

    def probed(self, prefix):
        """The number of files whose path begins so and that have probes"""
        texts = {e["string"]: e["text"] for e in self.events("meta_string")}
        return len({e["object"] for e in self.events("meta_object") if e["sites"] and texts.get(e["path"], "").startswith(prefix)})

    def columns(self, kind):
        """One kind of event of a chunk, as {field: values}"""
        ident, rows, content_size, compressed, _, _, _, digest, offset = kind
        event = self.by_id[ident]
        frame = self.data[offset:offset + compressed]
        if not self._check(frame, digest):
            raise Damaged("%s at %d" % (event.name, offset))
        try:
            content = zstandard.ZstdDecompressor().decompress(frame, max_output_size=content_size)
        except zstandard.ZstdError as e:
            raise Damaged(str(e)) from e
        if len(content) != content_size:
            raise Damaged("%s at %d has %d bytes" % (event.name, offset, len(content)))
        at, heads, out = 0, [], {}
        for f in event.fields:
            heads.append(Column(content, at, f.width))
            at = heads[-1].end
        for f, head in zip(event.fields, heads):
            values, at = head.read(content, at, rows, out.get("time"))
            if f.is_text:
                texts = []
                for n in values:
                    texts.append(content[at:at + n])
                    at += n
                values = texts
            elif f.type == "float":
                pack, unpack = ("<I", "<f") if f.size == 4 else ("<Q", "<d")
                values = [struct.unpack(unpack, struct.pack(pack, v))[0] for v in values]
            elif f.signed:
                half = 1 << (8 * f.size - 1)
                values = [v - 2 * half if v >= half else v for v in values]
            out[f.name] = values
        if at != len(content):
            raise Damaged("%s at %d has bytes left over" % (event.name, offset))
        return out

    def rows(self, names=None):
        """Yields (event, {field: value}) in file order, with texts as bytes."""
        for c in self.chunks:
            for kind in c.kinds:
                event = self.by_id.get(kind[0])
                if event is None or (names is not None and event.name not in names):
                    continue
                try:
                    columns = self.columns(kind)
                except (Damaged, struct.error, IndexError) as why:
                    self.damaged.append(str(why))
                    continue
                keys = list(columns)
                for row in zip(*columns.values()):
                    yield event, dict(zip(keys, row))

    def events(self, *names):
        """Yields events with these names (or all) as dicts with str texts. Key `event` is the name. A field with unit `string`
        also has its text as NAME_text, an enum the name of its value as NAME_name."""
        for event, row in self.rows(names or None):
            out = {"event": event.name}
            for f in event.fields:
                v = row[f.name]
                out[f.name] = v.decode("utf-8", "surrogateescape") if f.is_text else v
                if f.unit == "string":
                    out[f.name + "_text"] = self.strings.get(v, "")
                if f.names:
                    out[f.name + "_name"] = f.names.get(v)
            yield out

    @property
    def strings(self):
        if self._strings is None:
            self._strings = {0: ""}
            for _, row in self.rows({"meta_string"}):
                self._strings[row["string"]] = row["text"].decode("utf-8", "surrogateescape")
        return self._strings

    def counts(self):
        """{event name: number of events}"""
        out = {}
        for c in self.chunks:
            for kind in c.kinds:
                if kind[0] in self.by_id:
                    name = self.by_id[kind[0]].name
                    out[name] = out.get(name, 0) + kind[1]
        return out


if __name__ == "__main__":
    import sys

    of_trace = Trace(sys.argv[1]).schema
    ids = {f["id"] for f in of_trace["families"] if len(sys.argv) == 2 or f["name"] in ("core", "proc", *sys.argv[2:])}
    names = {f["name"] for f in of_trace["families"] if f["id"] in ids}
    kept = [e for e in of_trace["events"] if e["id"] >> 8 in ids]
    enums = {field.get("enum") for e in kept for field in e["fields"]}
    parts = {"families": [f for f in of_trace["families"] if f["id"] in ids], "options": [o for o in of_trace["options"] if o["family"] in names],
             "enums": [e for e in of_trace["enums"] if e["name"] in enums], "events": kept}
    print("{\n" + ",\n".join(f'"{part}": [\n' + ",\n".join(map(json.dumps, values)) + "\n]" for part, values in parts.items()) + "\n}")

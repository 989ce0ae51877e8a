# SPDX-License-Identifier: Apache-2.0
"""FORMAT.md says what the source does: its tables against records.def, errors in its figures against the headers, its
worked example against the golden file, which is then decoded by a reader written from the document alone."""

import re
import struct
from pathlib import Path

import pytest

from packed import Frame, decompressed

ROOT = Path(__file__).resolve().parents[2]
DOC = (ROOT / "format/FORMAT.md").read_text()
RECORDS = (ROOT / "format/records.def").read_text()
TINY = (ROOT / "tests/data/v1/tiny.gmt").read_bytes()
FIELDS = ["addr", "size", "arg0", "arg1", "stream", "name", "scope", "device", "stack"]


def section(number):
    return re.search(rf"^#+ {re.escape(number)}[. ].*?(?=^#+ \d|\Z)", DOC, re.M | re.S).group(0)


def rows(text):
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [r for r in cells if r and r[0].isdigit()]


def test_event_kinds():
    source = re.findall(r'^EVENT\(\w+, (\d+), (\w+), "([^"]+)", ([^"]*?), "([^"]+)"\)', RECORDS, re.M)
    assert len(source) == RECORDS.count("\nEVENT(") >= 31
    expected = []
    for number, layer, name, fields, meaning in source:
        carried = [f for f in FIELDS if f"F_{f.upper()}" in re.split(r"[ |]+", fields)]
        expected.append([number, name, layer.lower(), ", ".join(carried) or "-", meaning])
    assert rows(section("5.3")) == expected


def test_definition_kinds():
    source = re.findall(r'^DEF\(\w+, (\d+), "([^"]+)", "([^"]+)"\)', RECORDS, re.M)
    table = rows(section("6"))
    assert [r for r in table if len(r) == 3] == [list(s) for s in source]


def constant(header, name):
    text = re.search(rf"#define {name}\s+([^/\n]+)", (ROOT / "format" / header).read_text()).group(1)
    return eval(re.sub(r"(?<=[0-9a-fA-F])(u|ULL)\b", "", text.strip()))


def test_figures():
    raw, stored = constant("block.h", "GMT_BLOCK_RAW_MAX"), 256 * 1024 + 2048
    assert f"at most {raw} " in section("4.1") and f"at most {stored} " in section("4.1")
    slots, slot = constant("ring.h", "GMT_RING_SLOTS"), constant("ring.h", "GMT_SLOT_BYTES")
    region = constant("ring.h", "GMT_RING_HEAD") + slots * slot
    live = section("7")
    assert f"| region | u32 | {region} |" in live and f"| slots | u32 | {slots} |" in live
    assert f"| slot bytes | u32 | {slot} |" in live
    assert f"| magic | u64 | {hex(constant('ring.h', 'GMT_LIVE_MAGIC'))} " in live
    assert f"(at most {constant('ring.h', 'GMT_DEF_MAX')})" in live
    groups = section("4.6")
    assert f"window of at most 2^{constant('block.h', 'GMT_GROUP_WINDOW')} bytes" in groups
    assert f"the last {constant('codec.h', 'GMT_CODEC_OBJECTS')} can be named" in groups
    assert MOST_BACK == constant("codec_copies.h", "GMT_COPIES_PAST") - 1
    most = constant("block.h", "GMT_GROUP_EVENTS")
    assert f"at most {most} events in a block" in section("4.7") and f"after {16 * most} events" in section("4.7")
    assert f"of up to {constant('block.h', 'GMT_GROUP_BLOCKS')} (section 4.6)" in section("2")
    columns = re.search(r"enum gmt_column \{(.*?)\tGMT_COLUMNS,", (ROOT / "format/codec.h").read_text(), re.S).group(1)
    assert [int(r[0]) for r in rows(groups)] == list(range(columns.count("\tGMT_COL_")))
    magic = struct.pack("<Q", constant("block.h", "GMT_FILE_MAGIC")).hex(" ")
    assert f"| magic | u8[8] | {magic} " in section("3")
    assert struct.pack("<I", constant("block.h", "GMT_BLOCK_MAGIC")).hex(" ") in section("4.1")
    assert f"Version {constant('block.h', 'GMT_VERSION')}, " in DOC


MOST_BACK = int(re.search(r"before it in the group \(1 to (\d+);", section("4.7")).group(1))


def dump_bytes():
    dump = section("10").split("```")[1]
    found = bytearray()
    for line in filter(None, dump.splitlines()):
        offset, data = re.fullmatch(r"([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+?) *(?:  .*)?", line).groups()
        assert int(offset, 16) == len(found), line
        found += bytes.fromhex(data)
    return bytes(found)


def test_worked_example():
    assert dump_bytes() == TINY


# ---- a reader from the document ----


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def delta(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def with_bit(self):
        first = self.byte()
        return (first >> 1 & 63) + (64 * self.varint() if first & 0x80 else 0), first & 1

    def packed(self):
        count, ones = self.with_bit()
        return count if ones else count * 512

    def columns(self):
        lengths = [self.varint() for _ in range(self.varint())]
        starts = [self.at + sum(lengths[:i]) for i in range(len(lengths) + 1)]
        assert starts[-1] == len(self.data)
        return [Bytes(self.data[a:b]) for a, b in zip(starts, starts[1:])]


FIELDS_OF = {int(r[0]): r[3].split(", ") for r in rows(section("5.3"))}
BIT = {name: int(bit) for row in rows(section("5.1")) for bit, name in (row[0:2], row[2:4])}


class Events:
    """Section 5."""

    def __init__(self):
        self.seq = self.time = self.thread = 0
        self.groups, self.places = {}, {}
        self.objects, self.made, self.named, self.last_object = {}, 0, 0, 0
        self.numbered = 0
        self.past, self.copy = [], None

    def record(self, b):
        length = b.data[b.at]
        end = b.at + 1 + length
        b.at += 1
        event = self.event([b] * 11, None)
        b.at = end
        return event

    def event_or_copy(self, columns):
        """Section 4.7."""
        kinds = columns[0]
        if not self.copy and kinds.data[kinds.at] == 0:
            kinds.byte()
            self.copy = [kinds.varint(), kinds.varint(), kinds.delta(), kinds.delta()]
            assert 0 < self.copy[0] <= min(len(self.past), MOST_BACK) and self.copy[1]
        event = self.copied(columns) if self.copy else self.event(columns, columns[9])
        self.past.append((event, self.carried))
        return event

    def copied(self, columns):
        distance, left, scope, numbers = self.copy
        event, self.carried = self.past[-distance]
        late = self.unzigzag(columns[10].varint() << 8 | columns[9].byte())
        self.time, self.seq = (self.time + late) % 2**64, self.seq + 1
        event = event | {"time": self.time, "seq": self.seq}
        kind, self.thread = event["kind"], event["thread"]
        if event["scope"]:
            event["scope"] = (event["scope"] + scope) % 2**32
        if kind in (50, 51):
            event["arg0"] = (event["arg0"] + numbers) % 2**64
        if 40 <= kind <= 44:
            event["arg0"] = self.object(columns, kind)
        self.remember(event)
        self.copy = [distance, left - 1, scope, numbers] if left > 1 else None
        return event

    def group(self, kind):
        return self.groups.setdefault(1 if kind <= 3 else kind if kind < 64 else 64 + kind % 16, {})

    def remember(self, event):
        self.group(event["kind"]).update({name: event[name] for name in self.carried if name in event})
        if event["kind"] <= 39 and "addr" in self.carried and "size" in self.carried:
            self.places[event["addr"] * 0x9E3779B97F4A7C15 % 2**64 >> 52] = (event["addr"], event["size"])

    def event(self, columns, low):
        kind, mask = columns[0].varint(), columns[0].varint()
        carried = FIELDS_OF.get(kind, [])
        if kind >= 64:
            bits = columns[0].varint()
            carried = [name for bit, name in enumerate(FIELDS) if bits >> bit & 1]
        b = columns[1]

        def has(name):
            return mask >> BIT[name] & 1

        late = columns[10].varint()
        self.time = (self.time + self.unzigzag(late if low is None else late << 8 | low.byte())) % 2**64
        self.seq = (self.seq + (b.delta() if has("SEQ") else 1)) % 2**64
        self.thread = b.varint() if has("THREAD") else self.thread
        flags = b.varint() if has("FLAGS") else 0
        event = {"seq": self.seq, "time": self.time, "kind": kind, "thread": self.thread, "flags": flags}
        event.update(dict.fromkeys(FIELDS, 0), device=-1)
        self.fields(columns, kind, carried, has, event, low is not None)
        return event

    def object(self, columns, kind):
        """Section 4.6."""
        makes = kind in (40, 41)
        token = columns[7].varint()
        if token:
            number = ((self.made + 1 if makes else self.named - 1) + self.unzigzag(token - 1)) % 2**32
            value = self.objects[number]
            self.made, self.named = (number, self.named) if makes else (self.made, number)
        else:
            count, ones = columns[8].with_bit()
            value = self.last_object = (self.last_object + self.unzigzag(count) * (1 if ones else 16)) % 2**64
        if makes or not token:
            self.objects[self.numbered] = value
            self.named = self.numbered + 1 if makes else self.named
            self.numbered += 1
        return value

    def address(self, b, sizes, carried, last, event):
        token = b.varint() if "addr" in carried else 0
        place = self.places.get((token - 1) // 2, (0, 0)) if token else (0, 0)
        if "addr" in carried:
            event["addr"] = place[0] if token else (last.get("addr", 0) + self.unzigzag(b.packed())) % 2**64
        if "size" in carried:
            event["size"] = place[1] if token & 1 else sizes.packed()

    @staticmethod
    def unzigzag(value):
        return value >> 1 ^ -(value & 1)

    def fields(self, columns, kind, carried, has, event, in_columns):
        last, self.carried = self.group(kind), carried
        column = {"arg0": columns[4], "arg1": columns[5], "stack": columns[6]}
        self.address(columns[2], columns[3], carried, last, event)
        for name in FIELDS[2:]:
            if name not in carried:
                continue
            old = last.get(name, 0)
            predicted = old + (event["size"] if kind == 1 else -event["size"] if kind == 2 else 0) if name == "arg0" else old
            b = column.get(name, columns[1])
            if not has(name.upper()):
                value = predicted
            elif name == "arg0" and in_columns and 40 <= kind <= 44:
                value = self.object(columns, kind)
            elif name in ("arg0", "arg1", "scope"):
                value = old + b.delta()
            else:
                value = b.delta() if name == "device" else b.varint()
            event[name] = value % 2 ** (32 if name == "scope" else 64) if name != "device" else value
        self.remember(event)


def line_of(e):
    return (
        f"event seq={e['seq']} time={e['time']} kind={e['kind']} thread={e['thread']} flags={e['flags']} "
        f"addr={hex(e['addr'])} size={e['size']} arg0={e['arg0']} arg1={e['arg1']} stream={e['stream']} "
        f"name={e['name']} scope={e['scope']} device={e['device']} stack={e['stack']}"
    )


def read_by_the_document(data):
    lines_of_defs, lines_of_events = [], []
    assert crc32c(data[:60]) == struct.unpack_from("<I", data, 60)[0]
    at = struct.unpack_from("<I", data, 12)[0]
    frame, in_group, expected = None, None, None
    while at < len(data):
        magic, kind, codec, group, raw, stored, count, _ = struct.unpack_from("<IBBHIIII", data, at)
        payload = data[at + 64 : at + 64 + stored]
        assert crc32c(data[at : at + 60]) == struct.unpack_from("<I", data, at + 60)[0]
        assert crc32c(payload) == struct.unpack_from("<I", data, at + 56)[0]
        at += 64 + stored
        if codec in (2, 3):
            first = group % (16 if codec == 2 else 32) == 0
            if first:
                frame, in_group = Frame(), Events()
            assert first or group == expected
            expected = group + 1
            columns = Bytes(frame.part(payload, raw)).columns()
            for _ in range(count):
                lines_of_events.append(line_of(in_group.event(columns, columns[9]) if codec == 2 else in_group.event_or_copy(columns)))
            assert all(c.at == len(c.data) for c in columns) and not in_group.copy
            continue
        payload = decompressed(payload, raw) if codec else payload
        b, events = Bytes(payload), Events()
        for _ in range(count if kind == 1 else 0):
            number, id_, length = b.varint(), b.varint(), b.varint()
            lines_of_defs.append(f"def kind={number} id={id_} payload={payload[b.at:b.at + length].hex()}")
            b.at += length
        for _ in range(count if kind == 2 else 0):
            lines_of_events.append(line_of(events.record(b)))
        assert b.at == len(payload) or kind > 2
    return lines_of_defs + lines_of_events


@pytest.mark.parametrize("version,name", [(v, n) for v in (1, 2, 4, 5) for n in ("tiny", "kinds", "training")] + [(3, "thinned"), (4, "extra"), (5, "extra"), (5, "repeats")])
def test_a_reader_written_from_the_document(name, version):
    data = (ROOT / f"tests/data/v{version}/{name}.gmt").read_bytes()
    expected = (ROOT / f"tests/data/v{version}/{name}.gmt.txt").read_text().splitlines()
    assert read_by_the_document(data) == expected

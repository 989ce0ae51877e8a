# SPDX-License-Identifier: Apache-2.0
"""Simulates the ranks of a world that do not run (``gpumemtrace fit --ranks 512``): a server for PyTorch's TCPStore
and for the peers in gloo groups. The tool carries this file and starts it by

    python3 -I -S - SIZE COUNT    a world of SIZE ranks, of which COUNT run

It needs the standard library of Python 3.9 only. It prints one port for each rank that runs, the MASTER_PORT of that
rank, then serves until it is ended (SIGTERM: it removes its files). Ranks have ports of their own so that the server knows the sender.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import functools
import os
import re
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, Callable, Counter, Deque, Dict, Generator, Iterable, List, Optional, Tuple

Steps = Generator[None, None, Any]  # yields whenever it needs more bytes, or has to wait

# Seconds, and bytes.
TICK = 0.05
PAUSE = 0.2  # a wait that has lasted so long goes on
SILENT = 3  # a rank without a request for so long is busy with something else
COMING = 60  # a rank that has not connected by then will not
OWN = 0.2  # a rank's own message to a gloo peer does not come later than that
OTHERS = 20  # a rank that is silent for so long will not send
MOST = 64 << 20  # of one value or message
MOST_KEYS = 128 << 10
KEPT = 512 << 20  # of all gloo messages

NUMBER = struct.Struct("<Q")


class Peer:
    """A connection of the running rank with that index."""

    steps: Steps
    since = 0.0  # begin of its wait

    def __init__(self, connection: socket.socket, who: int) -> None:
        self.connection, self.who = connection, who
        self.received, self.unsent = bytearray(), bytearray()
        self.heard = False
        self.waits: List[Any] = []  # keys of the store, or messages of gloo

    def take(self, size: int) -> Steps:
        if size > MOST:
            raise ConnectionAbortedError  # no request of this protocol
        while len(self.received) < size:
            yield
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def number(self, form: str) -> Steps:
        return struct.unpack(form, (yield from self.take(struct.calcsize(form))))[0]

    def text(self) -> Steps:
        return (yield from self.take((yield from self.number("<Q"))))


# ---- the store ----


class Entry:
    """A key of the store."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.value: Optional[bytes] = None
        self.who = -1  # rank that set it last
        self.made = self.counter = False
        self.added: Dict[int, int] = {}  # by rank
        self.queue: Deque[bytes] = collections.deque()

    @property
    def real(self) -> bool:
        """Whether a rank has set it."""
        return self.value is not None and not self.made


def kind_of(key: bytes) -> bytes:
    """Keys of one kind differ only in numbers."""
    return re.sub(rb"\d+", b"0", key)


def symmetric_rank(key: bytes) -> Optional[bytes]:
    """The rank whose request for symmetric memory the key holds. Each rank shares its memory with itself in place of all others:
    PyTorch passes descriptors from rank to rank in a ring, which would end at one that does not run."""
    found = re.search(rb"SymmetricMemory/\d+/(\d+)$", key)
    return found[1] if found else None


def as_of_rank(rank: bytes, value: bytes) -> bytes:
    """A request begins with the device, and no two ranks may name the same one."""
    return struct.pack("<i", 1000 + int(rank)) + value[4:] if len(value) > 16 else value


def sharing_ranks(key: bytes) -> int:
    """How many ranks share a file that the key names. PyTorch 2.5 and 2.6 ask for symmetric memory through it: rank 0 of a group sets HOST/NAME, and
    all of them open /tmp/NAME. 0 for other keys."""
    found = re.search(rb"symmetric_memory-([\d_]+)/init$", key)
    return found[1].count(b"_") + 1 if found else 0


def made_name() -> bytes:
    """HOST/NAME, where rank 0 of the group does not run."""
    return b"%s/%s" % (socket.gethostname().encode(), os.urandom(16).hex().encode())


class SharedFile:
    """A store of PyTorch in a file: keys and values, each behind its length. Each rank that runs has a file of its own, so that its requests for
    symmetric memory can be answered there as the store answers them."""

    def __init__(self, path: bytes, size: int) -> None:
        self.path, self.size, self.read = path, size, 0

    def texts(self, data: bytes) -> Generator[bytes, None, None]:
        """The new ones; the last may not be whole yet."""
        while len(data) >= self.read + 4 and len(data) >= (end := self.read + 4 + int.from_bytes(data[self.read:self.read + 4], "little")):
            yield data[self.read + 4:end]
            self.read = end

    def answer(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self.path, "r+b") as file:
            if os.fstat(file.fileno()).st_size == self.read:
                return
            fcntl.flock(file, fcntl.LOCK_EX)
            found = list(self.texts(file.read()))
            for key, value in zip(found[::2], found[1::2]):
                if rank := symmetric_rank(key):
                    for other in {b"%d" % n for n in range(self.size)} - {rank}:
                        for part in (key[:-len(rank)] + other, as_of_rank(other, value)):
                            self.read += file.write(struct.pack("<I", len(part)) + part)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def wrapped(number: int) -> int:
    """A rank may add any number, so sums wrap around."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def text(value: bytes) -> bytes:
    return NUMBER.pack(len(value)) + value


class Store:
    """Keys and values of the running ranks. Each request takes the index of the rank and returns the bytes of the answer.

    A missing key is waited for as long as a running rank may still set it. Then the store makes a value: that of a key
    of the same kind (this rank's, if it has set one), or else 128 zeros, which read as the number 0 and have the length
    of an NCCL id. A counter is the sum of what the running ranks added. Once each of them has added, the expected
    additions of the other ranks are included.
    """

    def __init__(self, size: int, ports: List[int]) -> None:
        self.size, self.ports = size, ports  # ports: of the gloo peers, one for each running rank; 0: none
        self.entries: Dict[bytes, Entry] = {}
        self.kinds: Dict[bytes, List[Entry]] = collections.defaultdict(list)
        self.often: Counter[Tuple[int, bytes]] = collections.Counter()  # uses of a kind of key by a rank
        self.files: Dict[Tuple[int, bytes], SharedFile] = {}  # by rank and key

    def use(self, who: int, key: bytes) -> None:
        self.often[who, kind_of(key)] += 1

    def has_been(self, who: int, waits: int, key: bytes) -> bool:
        """Whether that rank has read or set such a key as often as the waiting rank. Then it has passed the same place,
        because all ranks run the same program."""
        return self.often[who, kind_of(key)] >= self.often[waits, kind_of(key)]

    def entry(self, key: bytes) -> Entry:
        if key not in self.entries:
            self.entries[key] = Entry(key)
            self.kinds[kind_of(key)].append(self.entries[key])
        return self.entries[key]

    def put(self, who: int, key: bytes, value: bytes, made: bool = False, counter: bool = False) -> None:
        entry = self.entry(key)
        entry.value, entry.who, entry.made, entry.counter = value, who, made, counter

    def set(self, who: int, *pairs: bytes) -> bytes:
        for key, value in zip(pairs[::2], pairs[1::2]):
            self.use(who, key)
            self.put(who, key, value)
            self.share(who, key, value)
        return b""

    def share(self, who: int, key: bytes, value: bytes) -> bool:
        """Whether the key names a file, which is then the rank's."""
        size, path, known = sharing_ranks(key), b"/tmp/" + value.rpartition(b"/")[2], self.files.get((who, key))
        if size and (known is None or known.path != path):
            self.files[who, key] = SharedFile(path, size)
        return size > 0

    def end(self, who: int) -> None:
        """The rank has gone."""
        for rank, key in list(self.files):
            if rank == who:
                self.files.pop((rank, key)).remove()

    def append(self, who: int, key: bytes, value: bytes) -> bytes:
        entry = self.entry(key)
        return self.set(who, key, (entry.value or b"") + value if entry.real else value)

    def total(self, entry: Entry, who: int) -> int:
        """Once each running rank has added, every other one is assumed to have added as much as this one."""
        running, total = len(self.ports), sum(entry.added.values())
        return wrapped(total + (self.size - running) * entry.added[who] if len(entry.added) == running else total)

    def add(self, who: int, key: bytes, number: int) -> bytes:
        self.use(who, key)
        entry = self.entry(key)
        counter = entry.counter or not entry.real
        if counter:
            if number:  # 0 only reads
                entry.added[who] = entry.added.get(who, 0) + number
            total = self.total(entry, who)
        else:
            found = re.match(rb"\s*[+-]?\d+", entry.value or b"")
            total = wrapped((int(found[0]) if found else 0) + number)
        self.put(who, key, b"%d" % total, counter=counter)
        return struct.pack("<q", total)

    def value(self, who: int, key: bytes) -> bytes:
        """Nothing for a missing key."""
        entry = self.entries.get(key)
        if entry is None or entry.value is None:
            return b""
        if entry.counter:
            return b"%d" % self.total(entry, who)
        if entry.who == who and not entry.made:
            return entry.value
        if rank := symmetric_rank(key):
            return as_of_rank(rank, self.like(who, key) or entry.value)
        if self.share(who, key, own := b"%s-%d" % (entry.value, who)):
            return own
        return (gloo_address(entry.value, self.ports[who]) if self.ports[who] else None) or entry.value

    def get(self, who: int, *keys: bytes) -> bytes:
        return b"".join(text(self.value(who, key)) for key in keys)

    def compare_set(self, who: int, key: bytes, expected: bytes, desired: bytes) -> bytes:
        entry = self.entries.get(key)
        real = entry is not None and entry.real
        if not real and expected:
            return text(expected)
        if entry is None or not real or entry.value == expected:
            self.set(who, key, desired)
        return self.get(who, key)

    def delete(self, who: int, key: bytes) -> bytes:
        entry = self.entries.get(key)
        if entry is None:
            return NUMBER.pack(0)
        real = entry.real
        entry.value, entry.made, entry.counter, entry.added = None, False, False, {}
        return NUMBER.pack(real)

    def check(self, who: int, *keys: bytes) -> bytes:
        found = (self.entries.get(key) for key in keys)
        return b"\0" if all(entry and (entry.real or entry.queue) for entry in found) else b"\1"

    def count(self, who: int) -> bytes:
        return NUMBER.pack(sum(entry.real for entry in self.entries.values()))

    def keys(self, who: int) -> bytes:
        return self.count(who) + b"".join(text(entry.key) for entry in self.entries.values() if entry.real)

    def push(self, who: int, key: bytes, value: bytes) -> bytes:
        self.use(who, key)
        self.entry(key).queue.append(value)
        return b""

    def length(self, who: int, key: bytes) -> bytes:
        return NUMBER.pack(len(self.entries[key].queue) if key in self.entries else 0)

    def pop(self, who: int, key: bytes) -> bytes:
        """The length of the queue, then its first value."""
        length, entry = self.length(who, key), self.entries.get(key)
        return length + text(entry.queue.popleft()) if entry and entry.queue else length

    def like(self, who: int, key: bytes) -> Optional[bytes]:
        """The value of the latest key of that kind, this rank's before that of another."""
        usable = [entry for entry in self.kinds[kind_of(key)] if entry.real and not entry.counter]
        own = [entry for entry in usable if entry.who == who]
        return (own or usable)[-1].value if usable else None

    def ready(self, who: int, key: bytes, may_be_set: Callable[[], bool]) -> bool:
        """Whether the key is there, or is made now. Addresses of gloo peers and of symmetric memory are not waited for: this process
        simulates them all."""
        entry = self.entries.get(key)
        if entry and (entry.value is not None or entry.queue):
            return True
        value = made_name() if sharing_ranks(key) else self.like(who, key)
        if may_be_set() and not (value and (symmetric_rank(key) or gloo_address(value, 0))):
            return False
        self.put(who, key, b"0" * 128 if value is None else value, made=True)
        return True


# Requests of TCPStore by their numbers: the arguments (t: a text, q: a number, l: texts, p: pairs of texts), the answer.
VALIDATE, CHECK, WAIT, CANCEL, PING = 0, 5, 6, 12, 13
MAGIC = 0x3C85F7CE
REQUESTS: Dict[int, Tuple[str, Callable[..., bytes]]] = {
    1: ("tt", Store.set), 2: ("ttt", Store.compare_set), 3: ("t", Store.get), 4: ("tq", Store.add), CHECK: ("l", Store.check),
    7: ("", Store.count), 8: ("t", Store.delete), 9: ("tt", Store.append), 10: ("l", Store.get), 11: ("p", Store.set),
    CANCEL: ("", lambda store, who: b"\1"), PING: ("I", lambda store, who, nonce: struct.pack("<I", nonce)),
    14: ("tt", Store.push), 15: ("t", Store.pop), 16: ("t", Store.length), 17: ("", Store.keys)}


class StorePeer(Peer):
    """A client of the store."""

    def arguments(self, shape: str) -> Steps:
        if shape in ("l", "p"):
            count = yield from self.number("<Q")
            if count > MOST_KEYS:
                raise ConnectionAbortedError  # no request of this protocol
            shape = "t" * count * (2 if shape == "p" else 1)
        found = []
        for letter in shape:
            found.append((yield from (self.text() if letter == "t" else self.number(f"<{letter}"))))
        return found

    def wait(self, server: Server) -> Steps:
        """Answers once all keys are there. Of the requests behind it only its cancellation is looked at."""
        keys = yield from self.arguments("l")
        server.asked(self)
        for key in keys:
            server.store.use(self.who, key)
        self.waits, self.since = keys, server.now
        while self.received[:1] != bytes([CANCEL]):
            if all([server.store.ready(self.who, key, functools.partial(server.may_be_set, self, key)) for key in keys]):
                self.unsent += b"\0"
                break
            yield
        self.waits = []

    def talk(self, server: Server) -> Steps:
        known = False
        while True:
            kind = yield from self.number("B")
            if kind == VALIDATE:
                known = (yield from self.number("<I")) == MAGIC
            if not known or kind not in (VALIDATE, WAIT, *REQUESTS):
                raise ConnectionAbortedError  # no request of this protocol
            if kind == WAIT:
                yield from self.wait(server)
            elif kind != VALIDATE:
                shape, request = REQUESTS[kind]
                arguments = yield from self.arguments(shape)
                self.unsent += request(server.store, self.who, *arguments)
                if kind not in (CHECK, PING):  # which watchdogs repeat
                    server.asked(self)

    def look(self, server: Server) -> None:
        next(self.steps)


# ---- gloo ----

SEND_BUFFER, SEND, SEND_READY, RECEIVE_READY = range(4)
PREAMBLE = struct.Struct("<6Q")  # bytes, kind, slot, offset, length, remote offset
ADDRESS = 128 + 8  # a socket's address and a number


def gloo_address(value: bytes, port: int) -> Optional[bytes]:
    """The value with our address and that port in place of the rank's own; None if it is not where a rank of a gloo group
    listens: the name of its host and its address, each behind its length."""
    name = int.from_bytes(value[:8], "little")
    at = 8 + name + 8
    if name > 1024 or len(value) < at + ADDRESS or value[at - 8:at + 2] != struct.pack("<QH", ADDRESS, socket.AF_INET):
        return None
    return value[:at + 2] + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + value[at + 8:]


def preamble(kind: int, slot: int, length: int) -> bytes:
    return PREAMBLE.pack(PREAMBLE.size + (length if kind == SEND else 0), kind, slot, 0, length, 0)


class Gloo:
    """Messages of the running ranks, which connect to us in the place of every other rank. A rank gets what it has sent itself in the same place of
    the program (the first for the first, because blocks go round a ring in pieces), or else what another running rank has sent there."""

    def __init__(self) -> None:
        self.sent: Dict[Tuple[int, int, int, int], bytes] = {}  # by rank, slot (gloo counts its collectives), length, number
        self.counts: Counter[Tuple[int, ...]] = collections.Counter()
        self.bytes = 0

    def count(self, *place: int) -> int:
        self.counts[place] += 1  # by kind, rank, slot, length
        return self.counts[place] - 1

    def keep(self, who: int, slot: int, data: bytes) -> None:
        if self.bytes > KEPT or len(self.counts) > 1 << 20:
            self.sent.clear()
            self.counts.clear()
            self.bytes = 0
        number = self.count(SEND, who, slot, len(data))
        self.sent[who, slot, len(data), number] = self.sent[who, slot, len(data), -1] = data
        self.bytes += len(data) + 500  # and those of the tables

    def answer(self, server: Server, who: int, slot: int, length: int, number: int, since: float) -> Optional[bytes]:
        if server.now - since < OWN and length:
            return self.sent.get((who, slot, length, number))
        for other in (who, *range(len(server.latest))):
            for which in (number, -1):  # that message, else the latest
                if (other, slot, length, which) in self.sent:
                    return self.sent[other, slot, length, which]
        return None if length and server.now - server.others_since(who) < OTHERS else bytes(length)


class GlooPeer(Peer):
    """A pair of gloo: this rank and one that does not run."""

    def talk(self, server: Server) -> Steps:
        yield from self.take(8)  # the number of the pair
        while True:
            _, kind, slot, _, length, _ = PREAMBLE.unpack((yield from self.take(PREAMBLE.size)))
            if kind > RECEIVE_READY or length > MOST:
                raise ConnectionAbortedError  # no request of this protocol
            data = (yield from self.take(length)) if kind in (SEND_BUFFER, SEND) else b""
            if kind == SEND:
                server.gloo.keep(self.who, slot, data)
            elif kind == SEND_READY:
                self.unsent += preamble(RECEIVE_READY, slot, length)
            elif kind == RECEIVE_READY:
                self.waits.append((slot, length, server.gloo.count(kind, self.who, slot, length), server.now))

    def look(self, server: Server) -> None:
        still = []
        for wanted in self.waits:
            slot, length = wanted[:2]
            data = server.gloo.answer(server, self.who, *wanted)
            if data is None:
                still.append(wanted)
            else:
                self.unsent += preamble(SEND_READY, slot, length) + preamble(SEND, slot, length) + data
        self.waits = still


# ---- the server ----

# In a pair of gloo ranks the one with the greater address connects; ports are compared by their low byte first.
GLOO_PORTS = range(0x400, 0x8000, 0x100)


class Server:
    def __init__(self, size: int, running: int) -> None:
        self.now = self.start = time.monotonic()
        self.connections = [0] * running  # of each rank that runs
        self.latest: List[Optional[float]] = [None] * running  # time of its latest request; None: it has not connected
        self.peers: List[Any] = []
        self.selector = selectors.DefaultSelector()
        self.ports = [self.listen(who, [0], StorePeer) for who in range(running)]
        self.store = Store(size, [self.listen(who, GLOO_PORTS, GlooPeer) for who in range(running)])
        self.gloo = Gloo()

    def listen(self, who: int, ports: Iterable[int], kind: Any) -> int:
        """For that rank, at the first port that is free; 0: none is."""
        for port in ports:
            try:
                listener = socket.create_server(("127.0.0.1", port), backlog=64)
            except OSError:
                continue
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, functools.partial(self.accept, listener, who, kind))
            return int(listener.getsockname()[1])
        return 0

    def asked(self, peer: Peer) -> None:
        self.latest[peer.who] = self.now

    def may_set(self, who: int, peer: Peer, key: bytes) -> bool:
        latest, paused = self.latest[who], self.now - PAUSE
        if latest is None:
            return self.now - self.start < COMING
        if not self.connections[who] or self.store.has_been(who, peer.who, key):
            return False
        if peer.since <= paused and any(p.who == who and p.waits and p.since <= paused for p in self.peers if isinstance(p, StorePeer)):
            return False
        return self.now - max(latest, peer.since) < SILENT

    def may_be_set(self, peer: Peer, key: bytes) -> bool:
        return any(self.may_set(who, peer, key) for who in range(len(self.latest)) if who != peer.who)

    def others_since(self, who: int) -> float:
        """The time since when no other running rank has sent anything. One that has not connected may."""
        since = [self.now if latest is None else latest if count else float("-inf") for latest, count in zip(self.latest, self.connections)]
        return max(since[:who] + since[who + 1:], default=float("-inf"))

    def accept(self, listener: socket.socket, who: int, kind: Any) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = kind(connection, who)
        peer.steps = peer.talk(self)
        self.peers.append(peer)
        self.selector.register(connection, selectors.EVENT_READ, functools.partial(self.hear, peer))
        self.connections[who] += 1
        self.asked(peer)

    def leave(self, peer: Peer) -> None:
        self.selector.unregister(peer.connection)
        peer.connection.close()
        self.peers.remove(peer)
        self.connections[peer.who] -= 1
        if not self.connections[peer.who]:
            self.store.end(peer.who)

    def hear(self, peer: Peer) -> None:
        peer.heard = True
        try:
            data = peer.connection.recv(1 << 18)
        except BlockingIOError:  # it has room for what is not sent yet
            return
        except OSError:
            data = b""
        if not data:
            self.leave(peer)
        elif isinstance(peer, GlooPeer):
            self.asked(peer)
        peer.received += data

    def go_on(self, peer: Peer, step: Callable[[], None]) -> None:
        try:
            step()
            with contextlib.suppress(BlockingIOError):
                del peer.unsent[:peer.connection.send(peer.unsent)]
        except OSError:
            self.leave(peer)
            return
        key, events = self.selector.get_key(peer.connection), selectors.EVENT_READ | bool(peer.unsent) * selectors.EVENT_WRITE
        if key.events != events:
            self.selector.modify(peer.connection, events, key.data)

    def turn(self) -> None:
        """All that came is taken before waits are looked at."""
        ready = self.selector.select(TICK if self.store.files or any(peer.waits for peer in self.peers) else None)
        self.now = time.monotonic()
        for key, _ in ready:
            key.data()
        for peer in [peer for peer in self.peers if peer.heard]:
            peer.heard = False
            self.go_on(peer, functools.partial(next, peer.steps))
        for peer in [peer for peer in self.peers if peer.waits]:
            self.go_on(peer, functools.partial(peer.look, self))
        for file in self.store.files.values():
            file.answer()


def main() -> None:
    size, running = map(int, sys.argv[1:])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(size, running)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print(*server.ports)
    sys.stdout.close()
    try:
        while True:
            server.turn()
    finally:
        for who in range(running):
            server.store.end(who)


if __name__ == "__main__":
    main()

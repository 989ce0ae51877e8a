# SPDX-License-Identifier: Apache-2.0
"""The process that simulates ranks that do not run (python/gpumemtrace/_world.py), asked by PyTorch's own clients of TCPStore and
of gloo, and by connections that send something else."""
import contextlib
import datetime
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

import pytest
from conftest import PACKAGE, REAL

pytestmark = pytest.mark.skipif(REAL, reason="for the simulated device")


@pytest.fixture(scope="module", autouse=True)
def client_library():
    """Only in the worker that runs these tests: it takes two seconds."""
    global dist
    import torch.distributed as dist


@contextlib.contextmanager
def world(size, running):
    """Starts it as the tool does; the port of each running rank."""
    with open(PACKAGE / "gpumemtrace/_world.py", encoding="utf-8") as program:
        server = subprocess.Popen([sys.executable, "-I", "-S", "-", str(size), str(running)], stdin=program, stdout=subprocess.PIPE, text=True)
    try:
        ports = [int(port) for port in server.stdout.readline().split()]
        assert len(ports) == running
        yield ports
        assert server.poll() is None
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@contextlib.contextmanager
def stores(size, running, timeout=30):
    with world(size, running) as ports:
        yield [client(port, timeout) for port in ports]


def client(port, timeout=30):
    return dist.TCPStore("127.0.0.1", port, None, False, timeout=datetime.timedelta(seconds=timeout))


@pytest.mark.matrix
def test_values_of_the_running_ranks():
    with stores(512, 3) as (first, middle, last):
        first.set("a", "one")
        middle.append("a", " two")
        assert last.get("a") == b"one two"
        assert middle.compare_set("a", "one", "x") == b"one two" and middle.compare_set("a", "one two", "x") == b"x"
        assert middle.compare_set("new", "", "y") == b"y" and middle.compare_set("other", "z", "y") == b"z"
        assert first.check(["a", "new"]) and not first.check(["a", "other"])
        assert first.num_keys() in (2, 3)  # and one that the client itself sets
        assert first.delete_key("a") and not first.delete_key("a") and not first.check(["a"])
        first.multi_set(["m/1", "m/2"], ["1", "2" * 100_000])
        assert last.multi_get(["m/2", "m/1"]) == [b"2" * 100_000, b"1"]
        first.set("number", "5")
        assert first.add("number", 2) == 7 and last.get("number") == b"7"
        assert first.add("large", 2 ** 63 - 1) == 2 ** 63 - 1 and first.add("large", 1) == -2 ** 63


@pytest.mark.matrix
def test_queues():
    if not hasattr(dist.TCPStore, "queue_push"):
        pytest.skip("this version of torch has no queues")
    with stores(512, 2) as (one, other):
        one.queue_push("q", "1")
        one.queue_push("q", "2")
        assert other.queue_len("q") == 2 and [other.queue_pop("q"), other.queue_pop("q")] == [b"1", b"2"] and one.queue_len("q") == 0


@pytest.mark.matrix
def test_a_barrier_counts_the_other_ranks():
    """It is over once the three that run are there."""
    with stores(512, 3) as (first, middle, last):
        assert [first.add("barrier", 1), middle.add("barrier", 1), first.add("barrier", 0), last.add("barrier", 1)] == [1, 2, 2, 512]
        assert first.get("barrier") == b"512"
        assert first.delete_key("barrier") and first.add("barrier", 1) == 1


@pytest.mark.matrix
def test_values_of_ranks_that_do_not_run():
    with stores(512, 2) as (one, other):
        one.set("group/1/0", "of one")
        other.set("group/33/256", "of the other")
        assert other.get("group/7/8") == b"of the other" and one.get("group/64/3") == b"of one"
        assert not one.check(["group/7/8"])
        one.set("group/7/8", "real")
        assert other.get("group/7/8") == b"real"
        made = one.get("like/no/other")
        assert made == b"0" * 128 and one.multi_get(["like/no/5", "group/9/9"]) == [made, b"real"]
        start = time.monotonic()
        assert one.get("what/the other is not silent about") == made
        assert 2 < time.monotonic() - start < 20  # for so long the other might have set it


@pytest.mark.matrix
def test_a_wait_that_is_given_up():
    """For a rank that has not connected yet. The client goes on as before."""
    with world(512, 2) as ports:
        one, start = client(ports[0]), time.monotonic()
        with pytest.raises(dist.DistStoreError):
            one.wait(["of the other"], datetime.timedelta(seconds=0.5))
        assert time.monotonic() - start < 30
        one.set("a", "b")
        assert one.get("a") == b"b"
        other = client(ports[1])
        other.set("of the other", "c")
        assert one.get("of the other") == b"c"


MAGIC = b"\0" + struct.pack("<I", 0x3C85F7CE)


def words(*texts):
    return b"".join(struct.pack("<Q", len(t)) + t for t in texts)


REQUESTS = (MAGIC + b"\x0d" + b"ping" + b"\1" + words(b"k", b"v") + b"\5" + struct.pack("<Q", 2) + words(b"k", b"l") + b"\4" + words(b"n") +
            struct.pack("<q", 3) + b"\x0b" + struct.pack("<Q", 2) + words(b"m", b"M", b"o", b"O") + b"\x0a" + struct.pack("<Q", 2) + words(b"o", b"m") +
            b"\2" + words(b"k", b"v", b"w") + b"\7" + b"\x0e" + words(b"a key with bytes of a length", b"first") +
            b"\x0f" + words(b"a key with bytes of a length") + b"\x11" + b"\6" + struct.pack("<Q", 1) + words(b"never") + b"\3" + words(b"k"))
ANSWERS = (b"ping" + b"\1" + struct.pack("<q", 3) + words(b"O", b"M") + words(b"w") + struct.pack("<Q", 4) + struct.pack("<Q", 1) + words(b"first") +
           struct.pack("<Q", 4) + words(b"k", b"n", b"m", b"o") + b"\0" + words(b"w"))


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_requests_in_pieces(piece):
    with world(1, 1) as (port,), socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(REQUESTS), piece):
            connection.sendall(REQUESTS[at:at + piece])
            time.sleep(0.001)
        answers = b""
        while len(answers) < len(ANSWERS):
            assert (more := connection.recv(10_000))
            answers += more
        assert answers == ANSWERS


def ends(port, sent):
    """Whether the server ends the connection, rather than wait for more."""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
        connection.sendall(sent)
        try:
            while connection.recv(10_000):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True


def test_connections_that_send_something_else():
    many = struct.pack("<Q", 1 << 40)
    gloo = b"12345678"
    with world(512, 1) as (port,):
        for sent in (b"GET / HTTP/1.1\r\n", MAGIC[:1] + b"....", MAGIC + b"\x63", MAGIC + b"\3" + many, MAGIC + b"\5" + many, b"\3" + words(b"a")):
            assert ends(port, sent), sent
        assert not ends(port, MAGIC + b"\3" + words(b"a")[:-1])
        peers = next(p for p in range(0x400, 0x8000, 0x100) if not socket.socket().connect_ex(("127.0.0.1", p)))
        for kind, length in ((9, 4), (1, 1 << 40), (3, 1 << 40)):
            assert ends(peers, gloo + struct.pack("<6Q", 48, kind, 0, 0, length, 0)), kind
        chance = random.Random(1)
        for _ in range(300):
            sent = bytearray(REQUESTS)
            for _ in range(3):
                sent[chance.randrange(len(sent))] = chance.randrange(256)
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(sent)
        one = client(port)
        one.set("still", "there")
        assert one.get("still") == b"there"


GLOO = """
import json, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, size, said = dist.get_rank(), dist.get_world_size(), {}
told = [{"seed": 5} if rank == 0 else None]
dist.broadcast_object_list(told)
said["told"] = told[0]
each = [None] * size
dist.all_gather_object(each, {"rank": rank})
said["gathered"] = each
rows = [torch.zeros(300_000) for _ in each]
dist.all_gather(rows, torch.full((300_000,), float(rank)))
said["rows"] = [row.unique().tolist() for row in rows]
total = torch.ones(4)
dist.all_reduce(total)
said["total"] = len(total)
dist.barrier()
mine = dist.new_group([rank - rank % 2, rank - rank % 2 + 1])
halves = [torch.zeros(2) for _ in range(2)]
dist.all_gather(halves, torch.full((2,), float(rank)), group=mine)
said["halves"] = [half.tolist() for half in halves]
print(json.dumps(said))
"""


def rank_environment(rank, size, port):
    """The variables that the tool sets (python/gpumemtrace/search/search_world.py)."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return {**env, "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0", "TORCH_GLOO_LAZY_INIT": "1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.mark.slow
@pytest.mark.matrix
def test_groups_of_gloo():
    """The root's objects reach all; a rank gets its own data in the place of every other rank's."""
    ranks = [0, 2]
    with world(4, len(ranks)) as ports:
        started = [subprocess.Popen([sys.executable, "-c", GLOO], env=rank_environment(rank, 4, port), stdout=subprocess.PIPE, text=True)
                   for rank, port in zip(ranks, ports)]
        said = [json.loads(process.communicate(timeout=500)[0]) for process in started]
    for rank, one in zip(ranks, said):
        assert one == {"told": {"seed": 5}, "gathered": [{"rank": rank}] * 4, "rows": [[rank]] * 4, "total": 4, "halves": [[rank, rank]] * 2}

# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs that a recorder could break, each a word on the command line (`tests/e2e/test_hosts_torch.py`). PyTorch's
own counts of allocations and frees are left in the file `made`, which is mapped: no limit and no kill keeps them back."""
import _thread
import ctypes
import glob
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import threading
import time

import torch
from torch import nn

FOLDER = os.environ["MADE_FOLDER"]
COUNT = int(os.environ.get("COUNT", 0))
libc = ctypes.PyDLL(None)  # keeps the GIL: nothing of Python runs within a call


def map_made():
    fd = os.open(os.path.join(FOLDER, "made"), os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, 4096)
    made = mmap.mmap(fd, 4096)
    os.close(fd)
    return made


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
        self.opt = torch.optim.AdamW(self.net.parameters())

    def steps(self, n, batch=None):
        for _ in range(n):
            x = torch.randn(32, 64, device="cuda") if batch is None else batch.cuda()
            self.net(x).square().mean().backward()
            self.opt.step()
            self.opt.zero_grad()


# ---- signals and threads ----

def profiler():
    """A handler of Python's at 1 kHz, which allocates now and then."""
    seen = [0]

    def handler(*_):
        seen[0] += 1
        if seen[0] % 16 == 0:
            torch.empty(1000, device="cuda")

    signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    Training().steps(COUNT or 80)
    signal.setitimer(signal.ITIMER_PROF, 0)
    assert seen[0] > 20


def threads():
    """Short threads, some with a cancellation that waits until they have ended. Nobody asks for the GIL while it can take
    effect: a thread that waits for it would end there, alone too."""
    training = Training()
    sys.setswitchinterval(1000)
    done, say = os.pipe()

    def one(cancelled):
        libc.pthread_setcancelstate(1, None)
        if cancelled:
            libc.pthread_cancel(ctypes.c_ulong(threading.get_ident()))
            libc.pthread_setcancelstate(0, None)
        held = torch.empty(1000, device="cuda")
        libc.pthread_setcancelstate(1, None)
        del held
        os.write(say, b"x")

    for i in range(COUNT or 300):
        _thread.start_new_thread(one, (i % 3 == 0,))
        os.read(done, 1)
    training.steps(5)


# ---- forks ----

def loader():
    data = torch.utils.data.TensorDataset(torch.zeros(128, 64))
    training = Training()
    for _ in range(3):
        for [batch] in torch.utils.data.DataLoader(data, 32, num_workers=2, multiprocessing_context="fork"):
            training.steps(1, batch)


def forks():
    """A thread forks while another trains: children that end at once, that exit and that run a program."""
    training, over = Training(), threading.Event()
    ended = []

    def fork(i):
        pid = os.fork()
        if pid == 0:
            if i % 3 == 1:
                os.execv("/bin/true", ["true"])
            os._exit(0)
        ended.append(os.waitpid(pid, 0)[1])

    def keep_forking():
        i = 0
        while not over.is_set():
            fork(i)
            i += 1

    t = threading.Thread(target=keep_forking)
    t.start()
    until = time.monotonic() + (COUNT or 2)
    while (time.monotonic() < until or len(ended) < 12) and t.is_alive():
        training.steps(1)
    over.set()
    t.join()
    assert len(ended) >= 12 and not any(ended), ended


# ---- descriptors, files and folders ----

def closed():
    for fd in (0, 1, 2):
        os.close(fd)
    Training().steps(10)


def reused():
    """A daemon: closes all, its own files get the numbers."""
    training = Training()
    training.steps(2)
    os.closerange(3, 2048)
    files = [os.open(os.path.join(FOLDER, f"data{i}.db"), os.O_RDWR | os.O_CREAT, 0o600) for i in range(12)]
    for fd in files:
        os.write(fd, b"HEADER\n")
    training.steps(COUNT or 30)
    for fd in files:
        os.write(fd, b"END\n")


def change_output(change):
    training = Training()
    training.steps(3)
    out = os.path.join(FOLDER, "out")
    for _ in range(6000 if "gpumemtrace" in os.environ.get("LD_PRELOAD", "") else 0):
        if glob.glob(out + "/*.gmt.live"):  # the recorder's files are there
            break
        time.sleep(0.01)
    if os.path.isdir(out):
        change(out)
    training.steps(COUNT or 60)


def moved():
    change_output(lambda out: os.rename(out, out + ".old"))


def emptied():
    change_output(shutil.rmtree)


def full():
    """The output's file system has next to no room left: the test mounted it."""
    Training().steps(COUNT or 60)


# ---- limits and what the program overwrites ----

def address_space():
    training = Training()
    training.steps(3)
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20),) * 2)
    training.steps(COUNT or 60)


def file_size():
    training = Training()
    training.steps(3)
    time.sleep(0.3)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    training.steps(COUNT or 60)


def title():
    """setproctitle: the arguments and the environment are written over."""
    with open("/proc/self/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[48])
    ctypes.memset(start, ord("/"), end - start - 1)
    Training().steps(10)


def confined():
    """No file may be opened, made longer or asked about from here on, and no thread started."""
    training = Training()
    training.steps(3)
    denied = [2, 4, 5, 6, 56, 57, 58, 76, 77, 83, 85, 87, 257, 262, 263, 285, 332, 435, 437]
    allow, deny = (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)
    code = [(0x20, 0, 0, 0)] + [x for n in denied for x in [(0x15, 0, 1, n), deny]] + [allow]
    program = b"".join(struct.pack("<HBBI", *line) for line in code)
    lines = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(lines)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter_, 0, 0) == 0
    training.steps(COUNT or 60)


# ---- for those who kill it ----

def torrent():
    """Allocations and frees until the end; a mapped file says after each how many there were."""
    done = ctypes.c_uint64.from_buffer(made)
    keep, empty = [None] * 64, torch.empty
    for i in range(1 << 40):
        k = i * 37 % 64
        if keep[k] is not None:
            keep[k] = None
            done.value += 1
        keep[k] = empty(1 + i * 7919 % 100_000, device="cuda", dtype=torch.uint8)
        done.value += 1


if __name__ == "__main__":
    made = map_made()
    globals()[sys.argv[1]]()
    stats = torch.cuda.memory_stats()
    struct.pack_into("<qq", made, 0, stats["allocation.all.allocated"], stats["allocation.all.freed"])
    if sys.argv[1] != "closed":
        print("done", flush=True)

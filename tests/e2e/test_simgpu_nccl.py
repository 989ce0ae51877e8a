# SPDX-License-Identifier: Apache-2.0
"""Device memory that the simulated NCCL takes, against figures that nvidia-smi printed on 8 H100 (records of KellerJordan/modded-nanogpt:
one process a GPU, one barrier) and that NCCL's issue tracker has."""
import os
import subprocess
import sys

import pytest
from test_simgpu_core import BUILD, SIM

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason="built without CUDA headers")

# Rank r of n, as if alone: a rank's memory does not depend on the others.
PROGRAM = """
import ctypes, os, sys
L = ctypes.CDLL(None)
n, rank = int(sys.argv[1]), int(sys.argv[2])
free, total, comm, p = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p()
def used():
    L.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    print((total.value - free.value) >> 20)
class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
def reduce(count): return L.ncclAllReduce(ctypes.c_void_p(p), ctypes.c_void_p(p), ctypes.c_size_t(count), 7, 0, comm, None)
L.cudaSetDevice(0); used()
for _ in range(128): L.cudaStreamCreate(ctypes.byref(ctypes.c_void_p()))  # PyTorch's pool, of which its process group takes one
buffer = (ctypes.c_double * (1 << 19))(); p = ctypes.addressof(buffer)
id = Id(); L.ncclGetUniqueId(ctypes.byref(id))
assert not L.ncclCommInitRank(ctypes.byref(comm), n, id, rank)
used()
assert not reduce(1); used()
assert not reduce(1 << 19); used()
assert not L.ncclAlltoAll(ctypes.c_void_p(p), ctypes.c_void_p(p), ctypes.c_size_t(1), 7, comm, None); used()
"""


def measure(ranks, rank, *library, card="h100-80g", **env):
    """MiB in use on the device: by a context; by a communicator; behind a barrier, a large sum, an exchange of all."""
    full = dict(os.environ, LD_PRELOAD=":".join([SIM, *library]), LD_LIBRARY_PATH=os.path.join(BUILD, "simgpu"), SIMGPU_CARD=card, SIMGPU_COUNT="8", SIMGPU_RANKS="alone", **env)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(ranks), str(rank)], env=full, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def test_published_figures_of_8_h100():
    context, made, barrier, summed, exchanged = measure(8, 3)
    assert 1504 <= barrier <= 1512  # torch 2.7 to 2.11
    alone = measure(1, 0)
    assert barrier - alone[2] == 336 and 1171 <= alone[2] <= 1176
    assert summed - barrier == 256  # NVLS
    assert 2688 <= exchanged - summed <= 3128  # issue 1685
    assert 519 <= context <= 526 and made < barrier
    assert measure(2, 0)[3] == measure(2, 0)[2]  # two GPUs do not use NVLS


@pytest.fixture(scope="module")
def old_nccl(tmp_path_factory):
    """A library whose version is that of torch 2.6."""
    path = tmp_path_factory.mktemp("nccl") / "libnccl.so.2"
    text = "int ncclGetVersion(int *n) { *n = 22105; return 0; }"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-x", "c", "-", "-o", path], input=text, text=True, check=True)
    return str(path)


def test_versions_that_connect_at_once(old_nccl):
    first, middle, last = (measure(8, rank, old_nccl)[2] for rank in (0, 3, 7))
    assert (middle, last) == (3448, 3208) and 3399 <= first <= 3400
    made, barrier, summed = measure(8, 3, old_nccl)[1:4]
    assert made + 94 == barrier == summed  # the first kernel, and nothing else
    assert measure(1, 0, NCCL_RUNTIME_CONNECT="0")[1] - measure(1, 0)[1] == 512  # pull request 2366


def test_settings_and_other_cards():
    barrier, summed = measure(8, 3, NCCL_NVLS_ENABLE="0", NCCL_MAX_NCHANNELS="2")[2:4]
    assert barrier == summed < measure(8, 3)[2] - 400
    assert measure(8, 3, card="a100-80g")[3] == measure(8, 3, card="a100-80g")[2]  # no NVLS before Hopper
    assert measure(2, 0, card="rtx3090-24g")[2] < 800

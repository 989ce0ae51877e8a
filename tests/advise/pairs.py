# SPDX-License-Identifier: Apache-2.0
"""A program of cases.py, others.py, more.py or never.py, run by its name; `after` = with the advice followed by an edit. The
kind of finding that is followed (never.py: that would be wrong) stands in its decorator, where table.py reads it."""
import os
import socket
import sys

AFTER = sys.argv[2:] == ["after"]
PROGRAMS = {}


def case(kind):
    def note(function):
        PROGRAMS[function.__name__] = function
        return function
    return note


def of_ranks(rank, n=2):
    """That function on each of two ranks, with NCCL; processes begin as copies of this one, before any device is used."""
    import torch
    import torch.distributed as dist
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    def begin(i):
        os.environ.update(RANK=str(i), LOCAL_RANK=str(i), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        torch.cuda.set_device(i)
        dist.init_process_group("nccl")
        rank()
        dist.destroy_process_group()

    processes = [torch.multiprocessing.get_context("fork").Process(target=begin, args=(i,)) for i in range(n)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    sys.exit(max(p.exitcode for p in processes))


def run():
    PROGRAMS[sys.argv[1]]()

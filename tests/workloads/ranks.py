# SPDX-License-Identifier: Apache-2.0
"""ranks.py [PART...]: ranks that talk, started by torchrun. Whatever they exchange is exchanged twice, between host
tensors by gloo, which is the truth, and between device tensors by NCCL; both must be equal."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TYPES = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def plain(value):
    """For comparison: everything as it reads on the host."""
    if isinstance(value, torch.Tensor):
        return value.cpu().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def reductions(put, group):
    for dtype in TYPES:
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            t = put(torch.tensor([1, 2, 3, RANK + 1, 0], dtype=dtype) * (RANK + 1))
            dist.all_reduce(t, op, group=group)
            yield t
    t = put(torch.tensor([True, RANK == 0]))
    dist.all_reduce(t, dist.ReduceOp.MIN, group=group)
    yield t
    t = put(torch.tensor([RANK + 1.5, 2.0]))
    dist.reduce(t, 1, group=group)
    yield t if RANK == 1 else None
    t = put(torch.arange(600.0) + RANK)  # more than one piece of memory
    for _ in range(30):
        dist.all_reduce(t, group=group)
        t /= RANKS
    yield t


def copies(put, group):
    for root in range(RANKS):
        t = put(torch.tensor([RANK + 1]))
        dist.broadcast(t, root, group=group)
        yield t
    x = put(torch.arange(32.0 * RANKS).reshape(4 * RANKS, 8) * (RANK + 1))
    y = put(torch.empty(4, 8))
    dist.reduce_scatter_tensor(y, x, group=group)
    z = put(torch.empty(4 * RANKS, 8))
    dist.all_gather_into_tensor(z, y, group=group)
    yield y, z
    parts = [put(torch.empty(3)) for _ in range(RANKS)]
    dist.all_gather(parts, put(torch.tensor([RANK, RANK + 0.5, 7.0])), group=group)
    yield parts
    t = put(torch.empty(2))
    dist.scatter(t, [put(torch.tensor([float(i), 2.0 * i])) for i in range(RANKS)] if RANK == 0 else None, 0, group=group)
    gathered = [put(torch.empty(2)) for _ in range(RANKS)] if RANK == 0 else None
    dist.gather(t, gathered, 0, group=group)
    yield t, gathered


def messages(put, group):
    sends, receives = [i + RANK + 1 for i in range(RANKS)], [RANK + i + 1 for i in range(RANKS)]
    t = put(torch.empty(sum(receives)))
    dist.all_to_all_single(t, put(torch.arange(float(sum(sends))) + 100 * RANK), receives, sends, group=group)
    yield t
    t = put(torch.empty(2))
    ops = [dist.P2POp(dist.irecv, t, (RANK - 1) % RANKS, group), dist.P2POp(dist.isend, put(torch.tensor([RANK, 0.5])), (RANK + 1) % RANKS, group)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    yield t
    if RANK < 2:
        t = put(torch.tensor([42, 43] if RANK == 0 else [0, 0]))
        (dist.isend if RANK == 0 else dist.irecv)(t, 1 - RANK, group=group).wait()
        yield t


def groups(put, group):
    backend = dist.get_backend(group)
    halves = [dist.new_group(list(range(i, RANKS, 2)), backend=backend) for i in range(2)]
    t = put(torch.tensor([RANK + 1.0]))
    dist.all_reduce(t, group=halves[RANK % 2])
    yield t
    turned = dist.new_group(list(range(RANKS))[::-1], backend=backend)
    parts = [put(torch.zeros(1)) for _ in range(RANKS)]
    dist.all_gather(parts, put(torch.tensor([float(RANK)])), group=turned)
    yield parts


def objects(put, group):
    mine = [{"rank": RANK, "text": "x" * 100 * (RANK + 1)}]
    dist.broadcast_object_list(mine, 0, group=group)
    yield mine
    all_of_them = [None] * RANKS
    dist.all_gather_object(all_of_them, {"rank": RANK, "list": [RANK] * RANK * 10}, group=group)
    yield all_of_them
    dist.scatter_object_list(mine, [{"part": i} for i in range(RANKS)] if RANK == 0 else None, src=0, group=group)
    yield mine


def weights(put, group):
    """Unequal at first."""
    torch.manual_seed(RANK)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    model = model.cuda() if put(torch.empty(1)).is_cuda else model
    yield list(nn.parallel.DistributedDataParallel(model, process_group=group).parameters())
    device = "cuda" if put(torch.empty(1)).is_cuda else "cpu"
    shape, names = ((2, 2), ("a", "b")) if RANKS == 4 else ((RANKS,), ("a",))
    mesh = dist.device_mesh.init_device_mesh(device, shape, mesh_dim_names=names)
    for name in names:
        t = put(torch.tensor([RANK + 1.0]))
        dist.all_reduce(t, group=mesh[name].get_group())
        yield t
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    shards = distribute_tensor(torch.arange(48.0).reshape(8, 6) * (RANK + 1), mesh["a"], [Shard(0)])
    yield shards.to_local(), shards.full_tensor()
    yield distribute_tensor(torch.arange(6.0) + RANK, mesh["a"], [Replicate()]).to_local()


def compare(part, gloo, nccl):
    truth = [plain(v) for v in part(lambda t: t, gloo)]
    found = [plain(v) for v in part(lambda t: t.cuda(), nccl)]
    assert truth and truth == found, (part.__name__, [(a, b) for a, b in zip(truth, found) if a != b][:3])


def own_operators():
    for op, expected in ((dist.ReduceOp.AVG, (RANKS + 1) / 2), (dist._make_nccl_premul_sum(2.0), RANKS * (RANKS + 1.0))):
        t = torch.tensor([RANK + 1.0]).cuda()
        dist.all_reduce(t, op)
        assert t.item() == expected, (op, t)


def nobody_waits_in_the_call():
    """A rank goes on behind a collective that others have not come to."""
    store = dist.distributed_c10d._get_default_store()
    t = torch.tensor([RANK + 1.0]).cuda()
    done = torch.cuda.Event()
    if RANK:
        store.wait(["go"])
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    done.record()
    if not RANK:
        assert not done.query() and not work.is_completed()
        time.sleep(0.2)
        store.set("go", "1")
    done.synchronize()
    assert t.item() == RANKS * (RANKS + 1) / 2, t


def in_a_graph():
    """A graph exchanges, whenever it is launched, what its buffers hold then; and takes its time."""
    t, all_of_them, part, root, got = (torch.zeros(n).cuda() for n in (4, 4 * RANKS, 2, 2, 2))

    def body():
        dist.all_reduce(t)
        dist.all_gather_into_tensor(all_of_them, t * 2 + RANK)
        dist.reduce_scatter_tensor(part, torch.cat([part] * RANKS))
        dist.broadcast(root, 1)
        ops = [dist.P2POp(dist.irecv, got, (RANK - 1) % RANKS), dist.P2POp(dist.isend, part, (RANK + 1) % RANKS)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for i in range(3):
        t.fill_(RANK + i)
        part.fill_(RANK * i)
        root.copy_(torch.tensor([RANK, float(i)]))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        ranks = RANKS * (RANKS - 1) // 2
        total = ranks + RANKS * i
        assert t.tolist() == [total] * 4, t
        assert all_of_them.tolist() == [2 * total + r for r in range(RANKS) for _ in range(4)], all_of_them
        assert part.tolist() == got.tolist() == [ranks * i] * 2, (part, got)
        assert root.tolist() == [1, i], root
        assert start.elapsed_time(end) > 0.05, start.elapsed_time(end)


PARTS = {"reductions": reductions, "copies": copies, "messages": messages, "groups": groups, "objects": objects, "weights": weights}


def main():
    torch.cuda.set_device(RANK)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    gloo, nccl = dist.new_group(backend="gloo"), dist.new_group(backend="nccl")
    for name in sys.argv[1:] or PARTS:
        compare(PARTS[name], gloo, nccl)
    own_operators()
    nobody_waits_in_the_call()
    in_a_graph()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

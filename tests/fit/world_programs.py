# SPDX-License-Identifier: Apache-2.0
"""world_programs.py KIND: one rank of a training of that kind, as torchrun would start it. Prints the elements of its parameters."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WIDTH, BATCH = 512, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def blocks(n=6):
    return nn.Sequential(*[Block() for _ in range(n)])


def train(model, optimizer=None, steps=5):
    optimizer = optimizer or torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(BATCH, 64, WIDTH, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss.detach_(), op=dist.ReduceOp.AVG)
        loss.item()


def count(model):
    elements = sum((p.to_local() if hasattr(p, "to_local") else p).numel() for p in model.parameters())
    print(f"elements {elements}\n", end="", flush=True)


def ddp():
    model = nn.parallel.DistributedDataParallel(blocks().cuda())
    count(model)
    train(model)


def zero_redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = nn.parallel.DistributedDataParallel(blocks().cuda())
    train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW))


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(blocks().cuda(), auto_wrap_policy=ModuleWrapPolicy({Block}),
                                     sharding_strategy=ShardingStrategy.FULL_SHARD, sync_module_states=True, use_orig_params=True)
    train(model)


def fsdp2(mesh=None, model=None):
    from torch.distributed.fsdp import fully_shard
    model = model or blocks().cuda()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    count(model)
    said = [{"rank": dist.get_rank()} if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(said)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, said[0])
    assert everyone == [{"rank": 0}] * dist.get_world_size()
    train(model)


def hsdp():
    n = dist.get_world_size()
    fsdp2(init_device_mesh("cuda", (2, n // 2), mesh_dim_names=("replicas", "shards")))


def split(model, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def tensor_parallel():
    model = split(blocks().cuda(), init_device_mesh("cuda", (dist.get_world_size(),)))
    count(model)
    train(model, torch.optim.AdamW(model.parameters(), foreach=False))


def two_dimensions():
    n = dist.get_world_size()
    tp = 8 if n >= 64 else 2
    mesh = init_device_mesh("cuda", (n // tp, tp), mesh_dim_names=("dp", "tp"))
    fsdp2(mesh["dp"], split(blocks().cuda(), mesh["tp"]))


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    n, rank = dist.get_world_size(), dist.get_rank()
    stages = 2 if "two" in sys.argv else 8 if n >= 64 else n
    mesh = init_device_mesh("cuda", (stages, n // stages), mesh_dim_names=("pp", "dp"))
    at = mesh["pp"].get_local_rank()
    model = (nn.Sequential(nn.Embedding(1000, WIDTH), *blocks(2)) if at == 0 else
             nn.Sequential(*blocks(2), nn.Linear(WIDTH, 1000)) if at == stages - 1 else blocks(2)).cuda()
    count(model)
    stage = PipelineStage(model, at, stages, torch.device("cuda", torch.cuda.current_device()), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, 2 * stages, loss_fn=lambda out, target: nn.functional.cross_entropy(out.flatten(0, 1), target.flatten()))
    optimizer = torch.optim.AdamW(model.parameters())
    words = torch.randint(0, 1000, (4 * stages, 64), device="cuda")
    for _ in range(5):
        schedule.step(*([words] if at == 0 else []), **(dict(target=words, losses=[]) if at == stages - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def experts():
    """Tokens go to experts on all ranks and come back."""
    from torch.distributed.nn.functional import all_to_all_single
    n = dist.get_world_size()
    router, mine = nn.Linear(WIDTH, n).cuda(), Block().cuda()
    model = nn.ModuleList([router, mine])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        x = torch.randn(4 * n, WIDTH, device="cuda")
        chosen = router(x).argmax(-1)
        sends = torch.bincount(chosen, minlength=n)
        gets = torch.empty_like(sends)
        dist.all_to_all_single(gets, sends)
        s, g = sends.tolist(), gets.tolist()
        there = all_to_all_single(x.new_empty(sum(g), WIDTH), x[chosen.argsort()], g, s)
        back = all_to_all_single(torch.empty_like(x), mine(there), s, g)
        (back.mean() + router(x).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


def symmetric():
    """Asynchronous tensor parallelism: memory that the ranks of a node, every second one, share."""
    import torch.distributed._symmetric_memory as symmetric_memory
    group = init_device_mesh("cuda", (dist.get_world_size() // 8, 4, 2), mesh_dim_names=("node", "tp", "dp"))["tp"].get_group()
    symmetric_memory.enable_symm_mem_for_group(group.group_name)
    shared = symmetric_memory.empty(1 << 20, device="cuda")
    symmetric_memory.rendezvous(shared, group.group_name).barrier()
    a, b = (torch.zeros(n, 256, device="cuda", dtype=torch.bfloat16) for n in (128, 64))
    torch.ops.symm_mem.fused_all_gather_matmul(a, [b.t()], 0, group.group_name)
    torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b.t(), "sum", 0, group.group_name)
    dist.barrier()
    print("elements", shared.numel(), flush=True)


def shared_file():
    """How PyTorch 2.5 and 2.6 ask for symmetric memory: rank 0 of a group names a file, in which each of its ranks finds the requests of the others."""
    import struct
    import uuid
    from torch.distributed.distributed_c10d import _get_default_store
    rank, node = dist.get_rank(), dist.get_rank() // 8 * 8
    store = dist.PrefixStore("symmetric_memory-" + "_".join(str(node + r) for r in range(8)), _get_default_store())
    if rank == node:
        store.set("init", f"{os.uname().nodename}/{uuid.uuid4()}")
    host, name = store.get("init").decode().split("/")
    assert host == os.uname().nodename
    file = dist.FileStore("/tmp/" + name, 8)
    for turn in range(2):
        request = struct.pack("<iiqq", rank % 8, os.getpid(), turn, 7)
        file.set(f"CUDASymmetricMemory/{turn}/{rank % 8}", request)
        found = [file.get(f"CUDASymmetricMemory/{turn}/{r}") for r in range(8)]
        assert found[rank % 8] == request and {f[4:] for f in found} == {request[4:]}, found
        assert len({f[:4] for f in found}) == 8, found
    dist.all_reduce(torch.zeros(1024, device="cuda"))
    print("file", "/tmp/" + name, flush=True)


def gloo():
    """Objects and tensors of the host travel by gloo."""
    group = dist.new_group(backend="gloo")
    told = [{"seed": 5} if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(told, group=group)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, told[0], group=group)
    assert everyone == [{"seed": 5}] * dist.get_world_size(), everyone[:3]
    total = torch.ones(1000)
    dist.all_reduce(total, group=group)
    dist.barrier(group)
    fsdp2()


def deepspeed(stage):
    import deepspeed as ds
    model = blocks()
    engine, *_ = ds.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": BATCH, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "torch_adam": True}},
        "zero_optimization": {"stage": stage}, "bf16": {"enabled": True}})
    for _ in range(5):
        loss = engine(torch.randn(BATCH, 64, WIDTH, device="cuda", dtype=torch.bfloat16)).float().square().mean()
        engine.backward(loss)
        engine.step()


KINDS = dict(ddp=ddp, zero_redundancy=zero_redundancy, fsdp1=fsdp1, fsdp2=fsdp2, hsdp=hsdp, tensor_parallel=tensor_parallel,
             two_dimensions=two_dimensions, pipeline=pipeline, experts=experts, symmetric=symmetric, shared_file=shared_file, gloo=gloo,
             **{f"zero{n}": lambda n=n: deepspeed(n) for n in (1, 2, 3)})


def main():
    kind, *options = sys.argv[1:]
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    backend = None if "default" in options else "nccl"
    dist.init_process_group(backend, **({"device_id": device} if "bound" in options else {}))
    KINDS[kind]()
    sys.stdout.flush()
    dist.destroy_process_group()  # or NCCL's watchdog, a thread, still runs while PyTorch's libraries are taken down


if __name__ == "__main__":
    main()

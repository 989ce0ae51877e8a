# SPDX-License-Identifier: Apache-2.0
"""One of eight ranks of a sharded training (FSDP): some steps, then a checkpoint of the whole model."""
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.testing._internal.distributed.fake_pg import FakeStore

VOCAB, DIM, HEADS, LAYERS = 8000, 1024, 16, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCAB, DIM), nn.Linear(DIM, VOCAB, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def save_checkpoint(model, path):
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True) if sys.argv[1] == "fixed" else FullStateDictConfig()
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save({"model": state}, path)


dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
torch.cuda.set_device(0)
with torch.device("meta"):
    model = Model()
model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block, nn.Embedding}), use_orig_params=True, device_id=0,
                                 param_init_fn=lambda module: module.to_empty(device="cuda", recurse=False))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(3):
    ids = torch.randint(0, VOCAB, (1, 257), device="cuda")
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
with tempfile.TemporaryFile() as file:
    save_checkpoint(model, file)
print("saved", torch.cuda.max_memory_allocated() >> 20, "MiB")
dist.destroy_process_group()

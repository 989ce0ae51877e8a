# SPDX-License-Identifier: Apache-2.0
"""Parts of chairs are segmented in point clouds with a point transformer (vector attention)."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

POINTS, DIM, PARTS, BATCH = 384, 64, 6, 2


def index_points(values, indices):
    return values.gather(2, indices.unsqueeze(-1).expand(-1, -1, -1, values.shape[-1]))


class PointTransformerLayer(nn.Module):
    def __init__(self, dim, pos_mlp_hidden=64, attn_mlp_hidden_mult=4, num_neighbors=None):
        super().__init__()
        self.num_neighbors = num_neighbors
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.pos_mlp = nn.Sequential(nn.Linear(3, pos_mlp_hidden), nn.ReLU(), nn.Linear(pos_mlp_hidden, dim))
        self.attn_mlp = nn.Sequential(nn.Linear(dim, dim * attn_mlp_hidden_mult), nn.ReLU(), nn.Linear(dim * attn_mlp_hidden_mult, dim))

    def forward(self, x, pos):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        rel_pos = pos[:, :, None] - pos[:, None, :]
        rel_pos_emb = self.pos_mlp(rel_pos)
        qk_rel = q[:, :, None] - k[:, None, :]
        v = v[:, None].expand(-1, x.shape[1], -1, -1)
        if self.num_neighbors is not None:
            indices = rel_pos.norm(dim=-1).topk(self.num_neighbors, dim=-1, largest=False).indices
            v, qk_rel, rel_pos_emb = (index_points(t, indices) for t in (v, qk_rel, rel_pos_emb))
        v = v + rel_pos_emb
        attn = self.attn_mlp(qk_rel + rel_pos_emb).softmax(dim=-2)
        return torch.einsum("bijd,bijd->bid", attn, v)


class PartSegmentation(nn.Module):
    def __init__(self, num_neighbors):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(3, DIM), nn.ReLU(), nn.Linear(DIM, DIM))
        self.layer = PointTransformerLayer(DIM, num_neighbors=num_neighbors)
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, PARTS))

    def forward(self, pos):
        x = self.embed(pos)
        return self.head(x + self.layer(x, pos))


model = PartSegmentation(num_neighbors=16 if sys.argv[1] == "fixed" else None).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    pos, parts = torch.rand(BATCH, POINTS, 3).cuda(), torch.randint(0, PARTS, (BATCH, POINTS)).cuda()
    loss = F.cross_entropy(model(pos).flatten(0, 1), parts.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")

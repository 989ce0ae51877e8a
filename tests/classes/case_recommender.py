# SPDX-License-Identifier: Apache-2.0
"""Recommendation: embedding bags with sparse gradients and SparseAdam, dense layers with Adagrad, interaction by bmm."""
import torch
from torch import nn

import runner
import truth


class Dlrm(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, dim, mode="sum", sparse=True) for n in rows)
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, dim), nn.ReLU())
        n = len(rows) + 1
        self.top = nn.Sequential(nn.Linear(n * (n - 1) // 2 + dim, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
        i, j = torch.tril_indices(n, n, -1)
        self.register_buffer("i", i, persistent=False)
        self.register_buffer("j", j, persistent=False)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        z = torch.stack([x] + [t(s) for t, s in zip(self.tables, sparse)], 1)
        pairs = torch.bmm(z, z.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat([x, pairs], 1)).squeeze(1)


model = Dlrm([60000, 30000, 20000, 10000], 128).to("cuda")
runner.mark_inside_backward(model.bottom)
optimizers = [torch.optim.SparseAdam(list(model.tables.parameters())),
              torch.optim.Adagrad([*model.bottom.parameters(), *model.top.parameters()])]
truth.model(model)
for o in optimizers:
    truth.optimizer(o)
lossf = nn.BCEWithLogitsLoss()
batches = runner.Batches(lambda: (torch.randn(4096, 13).cuda(), [torch.randint(0, t.num_embeddings, (4096, 4)).cuda() for t in model.tables],
                                  torch.ones(4096).cuda()))
for _ in range(3):
    dense, sparse, label = batches.next()
    for o in optimizers:
        o.zero_grad()
    with truth.phase("forward"):
        loss = lossf(model(dense, sparse), label)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        for o in optimizers:
            o.step()
    truth.mark("step")
truth.mark("end")
truth.finish()

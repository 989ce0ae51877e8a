# SPDX-License-Identifier: Apache-2.0
"""One graph for the whole training: messages by index and scatter, attention over edges, full batch, plain torch."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

NODES, EDGES, WIDTH = 12000, 60000, 256


class Conv(nn.Module):
    def __init__(self, n_in, n_out, heads=4):
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(n_in, n_out, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, n_out // heads))
        self.att_dst = nn.Parameter(torch.empty(1, heads, n_out // heads))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.xavier_uniform_(self.att_src)
        nn.init.xavier_uniform_(self.att_dst)

    def forward(self, x, edges):
        src, dst = edges
        h = self.lin(x).view(len(x), self.heads, -1)
        a = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(-1)[dst]
        a = F.leaky_relu(a, 0.2).exp()
        norm = torch.zeros(len(x), self.heads, device=x.device).index_add_(0, dst, a)
        messages = h[src] * (a / (norm[dst] + 1e-16)).unsqueeze(-1)
        out = torch.zeros_like(h).index_add_(0, dst, messages)
        return out.flatten(1) + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([Conv(WIDTH, WIDTH) for _ in range(3)])
        self.out = nn.Linear(WIDTH, 40)

    def forward(self, x, edges):
        for conv in self.convs:
            x = F.dropout(F.elu(conv(x, edges)), 0.2, self.training)
        return self.out(x)


model = Net().cuda()
optimizer = torch.optim.Adamax(model.parameters(), weight_decay=5e-4)
runner.declare(model, optimizer)
x, edges, y = torch.randn(NODES, WIDTH).cuda(), torch.randint(0, NODES, (2, EDGES)).cuda(), torch.zeros(NODES, dtype=torch.long).cuda()
mask = (torch.arange(NODES) % 2 == 0).cuda()
truth.holds("inputs", "the graph", lambda: [x, edges, y, mask])
runner.mark_inside_backward(model.convs[1])


@torch.no_grad()
def test():
    model.eval()
    with truth.phase("forward"):
        pred = model(x, edges).argmax(-1)
    truth.mark("test")
    return pred


for epoch in range(3):
    model.train()
    optimizer.zero_grad()
    with truth.phase("forward"):
        loss = F.nll_loss(F.log_softmax(model(x, edges), -1), y)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    test()
truth.finish()

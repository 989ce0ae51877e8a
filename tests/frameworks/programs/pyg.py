# SPDX-License-Identifier: Apache-2.0
# needs: torch_geometric
"""Graph networks: many small graphs in a batch with one answer each, and one graph with an answer for each node."""
import torch
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool


class Graphs(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(64, 256), layer(256, 256)
        self.out = torch.nn.Linear(256, 4)

    def forward(self, x, edges, batch=None):
        x = self.second(self.first(x, edges).relu(), edges).relu()
        return self.out(x if batch is None else global_mean_pool(x, batch))


def graph(nodes, edges):
    return Data(x=torch.randn(nodes, 64), edge_index=torch.randint(0, nodes, (2, edges)), y=torch.randint(0, 4, (1,)))


torch.manual_seed(0)
many = DataLoader([graph(2000, 6000) for _ in range(24)], batch_size=8, shuffle=True)
for layer in (GCNConv, GATConv):
    model = Graphs(layer).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in many:
        batch = batch.to("cuda")
        optimizer.zero_grad()
        F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
        optimizer.step()
whole = graph(20000, 60000).to("cuda")
whole.y = torch.randint(0, 4, (20000,), device="cuda")
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(whole.x, whole.edge_index), whole.y).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(float((model(whole.x, whole.edge_index).argmax(-1) == whole.y).float().mean()))

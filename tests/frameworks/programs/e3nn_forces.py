# SPDX-License-Identifier: Apache-2.0
# needs: e3nn
"""e3nn: forces as derivatives of an energy, trained through a second derivative."""
import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet
from torch import nn

torch.manual_seed(0)
NODE = "32x0e + 16x1o"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sh = o3.Irreps.spherical_harmonics(2)
        self.tp = o3.FullyConnectedTensorProduct(NODE, self.sh, NODE, shared_weights=False)
        self.fc = FullyConnectedNet([8, 128, self.tp.weight_numel], torch.relu)
        self.embed = nn.Embedding(10, 32 + 48)
        self.out = o3.Linear(NODE, "1x0e")

    def forward(self, pos, z, src, dst):
        x = self.embed(z)
        vec = pos[src] - pos[dst]
        sh = o3.spherical_harmonics(self.sh, vec, normalize=True, normalization="component")
        w = self.fc(torch.randn(len(src), 8, device=pos.device) * vec.norm(dim=1, keepdim=True))
        m = self.tp(x[src], sh, w)
        x = x + torch.zeros_like(x).index_add(0, dst, m)
        return self.out(x).sum()


net = Net().cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=True)
for i in range(5):
    n = 300
    pos = torch.randn(n, 3, device="cuda", requires_grad=True)
    z = torch.randint(0, 10, (n,), device="cuda")
    src, dst = torch.randint(0, n, (2000,), device="cuda"), torch.randint(0, n, (2000,), device="cuda")
    energy = net(pos, z, src, dst)
    force = -torch.autograd.grad(energy, pos, create_graph=True)[0]
    loss = energy ** 2 + (force - torch.randn_like(force)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

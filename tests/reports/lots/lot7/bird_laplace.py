# SPDX-License-Identifier: Apache-2.0
"""A classifier of birds gets a Laplace approximation of its last layer, for the uncertainty of its predictions."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

SPECIES, FEATURES, BATCH = 400, 128, 4


class BirdNet(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in [(3, 32), (32, 64), (64, FEATURES)]]
        self.features = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(FEATURES, SPECIES)

    def forward(self, x):
        return self.fc(self.features(x))


class DiagLLLaplace:
    def __init__(self, model, prior_precision=1.0):
        self.model, self.prior_precision = model.eval(), prior_precision
        self.H = torch.zeros(SPECIES * FEATURES + SPECIES, device="cuda")

    @torch.no_grad()
    def fit(self, loader):
        for images, _ in loader:
            phi = self.model.features(images.cuda())
            p = self.model.fc(phi).softmax(-1)
            w = p * (1 - p)
            self.H += torch.cat([torch.einsum("nc,nd->cd", w, phi.square()).flatten(), w.sum(0)])

    @property
    def posterior_variance(self):
        return 1 / (self.H + self.prior_precision)

    def last_layer_jacobians(self, phi):
        identity = torch.eye(SPECIES, device=phi.device).tile(len(phi), 1, 1)
        Js = torch.einsum("nd,nck->nckd", phi, identity).reshape(len(phi), SPECIES, -1)
        return torch.cat([Js, identity], dim=2)

    def functional_variance(self, phi):
        Js = self.last_layer_jacobians(phi)
        return torch.einsum("ncp,p,nkp->nck", Js, self.posterior_variance, Js)

    def functional_variance_fast(self, phi):
        n = SPECIES * FEATURES
        var_weight, var_bias = self.posterior_variance[:n].view(SPECIES, FEATURES), self.posterior_variance[n:]
        return torch.diag_embed(phi.square() @ var_weight.t() + var_bias)

    @torch.no_grad()
    def __call__(self, images):
        phi = self.model.features(images)
        f_mu = self.model.fc(phi)
        f_var = self.functional_variance_fast(phi) if sys.argv[1] == "fixed" else self.functional_variance(phi)
        kappa = 1 / torch.sqrt(1.0 + torch.pi / 8 * f_var.diagonal(dim1=1, dim2=2))
        return torch.softmax(kappa * f_mu, dim=-1)


def loader(batches, size):
    for _ in range(batches):
        yield torch.randn(size, 3, 64, 64), torch.randint(0, SPECIES, (size,))


model = BirdNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for images, labels in loader(8, 64):
    loss = F.cross_entropy(model(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

la = DiagLLLaplace(model)
la.fit(loader(8, 64))
confidence = [la(images.cuda()).max(-1).values.cpu() for images, _ in loader(6, BATCH)]
print(torch.cat(confidence).mean().item(), torch.cuda.max_memory_allocated() >> 20, "MiB")

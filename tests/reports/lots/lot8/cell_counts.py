# SPDX-License-Identifier: Apache-2.0
"""Gene expression of single cells is modelled by a variational autoencoder; counts are sampled from it for a posterior predictive check."""
import sys

import torch
import torch.nn.functional as F
from torch import distributions, nn

CELLS, GENES, HIDDEN, LATENT, SAMPLES, BATCH = 4096, 1200, 128, 10, 15, 128


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.z_encoder = nn.Sequential(nn.Linear(GENES, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.LayerNorm(HIDDEN), nn.ReLU())
        self.px_scale, self.px_dropout = nn.Linear(HIDDEN, GENES), nn.Linear(HIDDEN, GENES)
        self.px_r = nn.Parameter(torch.randn(GENES))

    def inference(self, x, n_samples=1):
        mean, log_var = self.z_encoder(torch.log1p(x)).chunk(2, -1)
        library = x.sum(1, keepdim=True)
        if n_samples > 1:
            mean, log_var, library = (t.expand(n_samples, *t.shape) for t in (mean, log_var, library))
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        h = self.decoder(z)
        return {"qz": (mean, log_var), "px_rate": library * self.px_scale(h).softmax(-1), "px_r": self.px_r.exp(), "px_dropout": self.px_dropout(h)}

    def forward(self, x):
        out = self.inference(x)
        rate, r, eps = out["px_rate"], out["px_r"], 1e-8
        log_rate = (r + rate + eps).log()
        likelihood = r * ((r + eps).log() - log_rate) + x * ((rate + eps).log() - log_rate) + torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
        likelihood = likelihood - F.softplus(out["px_dropout"])
        mean, log_var = out["qz"]
        return (-likelihood.sum(1) + 0.5 * (mean ** 2 + log_var.exp() - 1 - log_var).sum(1)).mean()


class Posterior:
    def __init__(self, model, counts):
        self.model, self.counts = model, counts

    def __iter__(self):
        for batch in self.counts.split(BATCH):
            yield batch.cuda()

    @torch.no_grad()
    def generate(self, n_samples):
        x_old, x_new = [], []
        for sample_batch in self:
            outputs = self.model.inference(sample_batch, n_samples=n_samples)
            px_rate, px_r, px_dropout = outputs["px_rate"], outputs["px_r"], outputs["px_dropout"]
            p = px_rate / (px_rate + px_r)
            l_train = distributions.Gamma(px_r, (1 - p) / p, validate_args=False).sample().clamp(max=1e8)
            gene_expressions = torch.poisson(l_train)
            p_zero = 1 / (1 + torch.exp(-px_dropout))
            gene_expressions[torch.rand_like(p_zero) <= p_zero] = 0
            gene_expressions = gene_expressions.permute(1, 2, 0)
            if sys.argv[1] == "fixed":
                sample_batch, gene_expressions = sample_batch.cpu(), gene_expressions.cpu()
            x_old.append(sample_batch)
            x_new.append(gene_expressions)
        return torch.cat(x_new).cpu().numpy(), torch.cat(x_old).cpu().numpy()


vae, counts = VAE().cuda(), torch.poisson(torch.rand(CELLS, GENES) * 3)
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
posterior = Posterior(vae, counts)
for epoch in range(2):
    for x in posterior:
        loss = vae(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
vae.eval()
x_new, x_old = posterior.generate(SAMPLES)
print(x_new.shape, "zeros", (x_new == 0).mean(), (x_old == 0).mean(), torch.cuda.max_memory_allocated() >> 20, "MiB")

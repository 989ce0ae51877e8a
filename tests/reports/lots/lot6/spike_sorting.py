# SPDX-License-Identifier: Apache-2.0
"""Spikes of a silicon probe are grouped by their features: k-means++ picks the first centres."""
import sys

import torch

SPIKES, FEATURES, CENTRES, TRIES = 240_000, 384, 12, 100
fixed = sys.argv[1] == "fixed"


def kmeans_plusplus(Xg, n_centres, device):
    """Each new centre is the one of TRIES samples that explains most of the variance that is left."""
    if fixed:
        vtot = torch.norm(Xg, 2, dim=1) ** 2
    else:
        vtot = (Xg ** 2).sum(1)
    vexp0 = torch.zeros(len(Xg), device=device)
    iclust = torch.zeros(len(Xg), dtype=torch.long, device=device)
    mu = torch.zeros(n_centres, Xg.shape[1], device=device)
    for j in range(n_centres):
        v2 = torch.relu(vtot - vexp0) + 1e-6
        isamp = torch.multinomial(v2, TRIES)
        Xc = Xg[isamp]
        if fixed:
            vexp = Xg @ Xc.T
            vexp *= 2
            vexp -= (Xc ** 2).sum(1)
        else:
            vexp = 2 * Xg @ Xc.T - (Xc ** 2).sum(1)
        dexp = torch.relu(vexp - vexp0.unsqueeze(1))
        imax = dexp.sum(0).argmax()
        better = dexp[:, imax] > 0
        mu[j] = Xc[imax]
        vexp0 = torch.where(better, vexp[:, imax], vexp0)
        iclust = torch.where(better, torch.full_like(iclust, j), iclust)
        if fixed:
            del vexp, dexp
    return mu, iclust


device = torch.device("cuda")
basis = torch.randn(61, FEATURES // 6, device=device)
features = []
for batch in range(SPIKES // 20_000):
    snippets = torch.randn(20_000, 6, 61).to(device)
    features.append((snippets @ basis).flatten(1).cpu())
features = torch.cat(features)
for group in range(3):
    Xg = features.to(device)
    mu, iclust = kmeans_plusplus(Xg, CENTRES, device)
    print("group", group, "centres", tuple(mu.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
    del Xg

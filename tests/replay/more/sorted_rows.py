# SPDX-License-Identifier: Apache-2.0
"""Sorts, top-k, unique, scans, FFTs and solvers: memory that libraries ask for beside tensors."""
import torch

for step in range(6):
    n = 700_000 + 311_111 * step
    x = torch.randn(n, device="cuda")
    v, i = x.sort()
    del v
    j = torch.argsort(i)
    del i, j
    k = x.topk(1000).values
    c = torch.cumsum(x, 0)
    f = torch.fft.rfft(x.view(-1)[: n // 1000 * 1000].view(1000, -1))
    del f, c
    m = torch.randn(3, 300 + 50 * step, 300 + 50 * step, device="cuda")
    a = m @ m.transpose(1, 2) + torch.eye(m.shape[1], device="cuda")
    torch.linalg.cholesky(a)
    q = torch.linalg.qr(m)
    s = torch.linalg.inv(a)
    e = torch.nn.functional.embedding(torch.arange(n, device="cuda") % 1000, torch.randn(1000, 8, device="cuda").requires_grad_())
    e.sum().backward()
    del q, s, e, a, m, k, x

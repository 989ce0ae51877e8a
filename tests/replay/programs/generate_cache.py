# SPDX-License-Identifier: Apache-2.0
"""Generation: every token makes each layer's cache of keys and values longer by one, in new memory."""
import torch

layers, heads, width = 6, 8, 64
weights = [torch.randn(512, 1536, device="cuda", dtype=torch.float16) for _ in range(layers)]
for prompt in (700, 130, 421):
    caches = [torch.randn(2, 4, heads, prompt, width, device="cuda", dtype=torch.float16) for _ in range(layers)]
    with torch.no_grad():
        for _ in range(60):
            x = torch.randn(4, 1, 512, device="cuda", dtype=torch.float16)
            for i, w in enumerate(weights):
                q, k, v = (x @ w).view(4, 1, 3, heads, width).permute(2, 0, 3, 1, 4)
                caches[i] = torch.cat([caches[i], torch.stack([k, v])], dim=3)
                scores = (q @ caches[i][0].transpose(-1, -2)).softmax(-1)
                x = (scores @ caches[i][1]).reshape(4, 1, 512)
    del caches

# SPDX-License-Identifier: Apache-2.0
"""Activations go to pinned memory in the forward pass and come back in the backward pass, on a stream of their own."""
import torch

side = torch.cuda.Stream()


class Offload:
    def __enter__(self):
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        return self.hooks.__enter__()

    def __exit__(self, *args):
        return self.hooks.__exit__(*args)

    def pack(self, t):
        if t.numel() < 100_000 or isinstance(t, torch.nn.Parameter):
            return t
        host = torch.empty(t.shape, dtype=t.dtype, pin_memory=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            host.copy_(t, non_blocking=True)
        t.record_stream(side)
        return (host,)

    def unpack(self, packed):
        if not isinstance(packed, tuple):
            return packed
        with torch.cuda.stream(side):
            t = packed[0].to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        t.record_stream(torch.cuda.current_stream())
        return t


model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(768, 2300), torch.nn.GELU(), torch.nn.Linear(2300, 768))
                              for _ in range(5))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(8):
    x = torch.randn(1500 + 333 * (step % 3), 768, device="cuda")
    with Offload():
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

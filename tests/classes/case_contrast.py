# SPDX-License-Identifier: Apache-2.0
"""Momentum contrast: a key encoder whose weights are replaced each step by new tensors, a queue, two views of an image."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet18

import runner
import truth


class MoCo(nn.Module):
    def __init__(self, dim=128, k=16384, m=0.999, t=0.07):
        super(MoCo, self).__init__()
        self.K, self.m, self.T = k, m, t
        self.encoder_q, self.encoder_k = resnet18(num_classes=dim), resnet18(num_classes=dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", torch.randn(dim, k))
        self.queue = nn.functional.normalize(self.queue, dim=0)
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr:ptr + keys.shape[0]] = keys.T
        self.queue_ptr[0] = (ptr + keys.shape[0]) % self.K

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            idx = torch.randperm(im_k.shape[0], device=im_k.device)
            k = nn.functional.normalize(self.encoder_k(im_k[idx]), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long).cuda()
        self._dequeue_and_enqueue(k)
        return logits, labels


model = MoCo().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
runner.declare(model, optimizer)
runner.mark_inside_backward(model.encoder_q.layer2)
batches = runner.Batches(lambda: [torch.randn(32, 3, 64, 64).cuda(non_blocking=True) for _ in range(2)])
for _ in range(3):
    images = batches.next()
    with truth.phase("forward"):
        output, target = model(im_q=images[0], im_k=images[1])
        loss = F.cross_entropy(output, target)
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.mark("end")
truth.finish()

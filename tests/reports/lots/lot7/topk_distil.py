# SPDX-License-Identifier: Apache-2.0
"""A small language model learns the most likely words of a larger one (distillation over the teacher's top k)."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, BATCH, TOPK = 32000, 512, 3, 64


class LM(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


class DistillationLoss(nn.Module):
    def __init__(self, temperature=1.0):
        super().__init__()
        self.temperature = temperature

    def forward(self, student_logits, teacher_topk, teacher_ids):
        teacher_logprobs = (teacher_topk / self.temperature).log_softmax(-1)
        if sys.argv[1] == "fixed":
            topk = student_logits.gather(-1, teacher_ids).float()
            student_logprobs = (topk / self.temperature).log_softmax(-1)
        else:
            logprobs = (student_logits.float() / self.temperature).log_softmax(-1)
            topk = logprobs.gather(-1, teacher_ids)
            student_logprobs = topk - topk.logsumexp(-1, keepdim=True)
        return F.kl_div(student_logprobs, teacher_logprobs, log_target=True, reduction="sum") / teacher_ids[..., 0].numel()


teacher, student = LM(512, 6).cuda().bfloat16().eval(), LM(256, 4).cuda()
criterion = DistillationLoss()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
for step in range(6):
    ids = torch.randint(0, VOCAB, (BATCH, LENGTH)).cuda()
    with torch.no_grad():
        teacher_topk, teacher_ids = teacher(ids).float().topk(TOPK, dim=-1)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        student_logits = student(ids)
    loss = criterion(student_logits, teacher_topk, teacher_ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")

# SPDX-License-Identifier: Apache-2.0
"""A chat model is finetuned on conversations, with a loss that is summed over words."""
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS, LENGTH, BATCH, ACCUMULATE = 20_000, 320, 5, 5, 512, 4, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@dataclass
class Output:
    logits: torch.Tensor


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(VOCAB, WIDTH), nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.lm_head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, input_ids):
        return Output(self.lm_head(self.norm(self.layers(self.embed(input_ids)))))


def conversations(steps):
    for _ in range(steps):
        ids = torch.randint(0, VOCAB, (BATCH, LENGTH))
        labels = ids.clone()
        labels[:, :LENGTH // 3] = -100
        yield {"input_ids": ids.cuda(), "labels": labels.cuda()}


model = ChatModel().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
loss_fct = nn.CrossEntropyLoss(reduction="sum")
total_loss = 0.0
for step, batch in enumerate(conversations(8)):
    outputs = model(batch["input_ids"])
    logits, labels = outputs.logits, batch["labels"]
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    loss = loss_fct(shift_logits.view(-1, VOCAB), shift_labels.view(-1)) / (BATCH * LENGTH)
    if sys.argv[1] == "fixed":
        del outputs, logits, shift_logits
    total_loss += loss.detach().float()
    (loss / ACCUMULATE).backward()
    if step % ACCUMULATE == ACCUMULATE - 1:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, total_loss.item() / (step + 1), torch.cuda.max_memory_allocated() >> 20, "MiB")

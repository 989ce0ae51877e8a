# SPDX-License-Identifier: Apache-2.0
# Semi-hard triplets of a batch: which other sentence is nearest, but not nearer than a sentence of the same label.
import torch
from sentence_transformers import SentenceTransformer, losses
torch.manual_seed(0)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = torch.nn.EmbeddingBag(8000, 256), torch.nn.Linear(256, 128)

    def forward(self, f):
        f["sentence_embedding"] = self.out(torch.relu(self.words(f["input_ids"])))
        return f


model = SentenceTransformer(modules=[Encoder()], device="cuda")
model.train()
loss_of = losses.BatchSemiHardTripletLoss(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids, labels = torch.randint(0, 8000, (256, 16), device="cuda"), torch.randint(0, 16, (256,), device="cuda")
    loss_of([{"input_ids": ids, "attention_mask": torch.ones_like(ids)}], labels).backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

# SPDX-License-Identifier: Apache-2.0
# A loss over many sentences, whose gradients are cached part by part.
import torch
from sentence_transformers import SentenceTransformer, losses
from transformers import BertConfig, BertModel
torch.manual_seed(0)


class Encoder(torch.nn.Module):
    """A text encoder whose inputs are token ids already."""
    def __init__(self):
        super().__init__()
        self.bert = BertModel(BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=3, num_attention_heads=8, intermediate_size=2048,
                                         hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def forward(self, f):
        f["sentence_embedding"] = self.bert(f["input_ids"], attention_mask=f["attention_mask"]).last_hidden_state.mean(1)
        return f

    def get_sentence_embedding_dimension(self):
        return 512


model = SentenceTransformer(modules=[Encoder()], device="cuda")
model.train()
loss_of = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=64)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(2):
    ids = torch.randint(5, 8000, (2, 4096, 8), device="cuda")
    loss_of([{"input_ids": x, "attention_mask": torch.ones_like(x)} for x in ids], None).backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

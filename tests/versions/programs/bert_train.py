# SPDX-License-Identifier: Apache-2.0
# A training of BERT on tokens without padding.
import torch
from transformers import BertConfig, BertForMaskedLM
torch.manual_seed(0)
cfg = BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BertForMaskedLM(cfg).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(5, 8000, (16, 512), device="cuda")
    model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

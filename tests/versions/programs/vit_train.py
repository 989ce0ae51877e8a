# SPDX-License-Identifier: Apache-2.0
# A training of a ViT of transformers.
import torch
from transformers import ViTConfig, ViTForImageClassification
torch.manual_seed(0)
cfg = ViTConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, image_size=224, patch_size=16, num_labels=1000,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = ViTForImageClassification(cfg).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
    model(pixel_values=x, labels=y).loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

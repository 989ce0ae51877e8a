# SPDX-License-Identifier: Apache-2.0
# A training of a ViT of timm.
import timm
import torch
torch.manual_seed(0)
model = timm.create_model("vit_small_patch16_224", pretrained=False).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    x, y = torch.randn(32, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (32,), device="cuda")
    torch.nn.functional.cross_entropy(model(x), y).backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

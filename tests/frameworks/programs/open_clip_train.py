# SPDX-License-Identifier: Apache-2.0
# needs: open_clip
"""OpenCLIP: image and text towers, contrastive loss, accumulation of features as its script does."""
import open_clip
import torch
from open_clip.loss import ClipLoss

torch.manual_seed(0)
model = open_clip.create_model("ViT-B-32", pretrained=None, device="cuda")
loss = ClipLoss()
plain = [p for n, p in model.named_parameters() if p.ndim < 2 or "ln" in n or "bias" in n or "logit_scale" in n]
rest = [p for p in model.parameters() if not any(p is q for q in plain)]
groups = [{"params": plain, "weight_decay": 0.0}, {"params": rest, "weight_decay": 0.2}]
optimizer = torch.optim.AdamW(groups, lr=5e-4, betas=(0.9, 0.98), eps=1e-6)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(4):
    images, texts = torch.randn(8, 3, 224, 224).to("cuda", non_blocking=True), torch.randint(0, 49408, (8, 77)).to("cuda", non_blocking=True)
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        a, b, scale = model(images, texts)
        total = loss(a, b, scale)
    scaler.scale(total).backward()
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        model.logit_scale.clamp_(0, 4.6052)
model.eval()
with torch.no_grad(), torch.autocast("cuda"):
    print(model.encode_image(torch.randn(16, 3, 224, 224).cuda()).shape)

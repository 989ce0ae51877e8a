# SPDX-License-Identifier: Apache-2.0
# needs: segmentation_models_pytorch
"""segmentation-models-pytorch: U-Net with a ResNet encoder, Dice loss, a scheduler."""
import segmentation_models_pytorch as smp
import torch

torch.manual_seed(0)
model = smp.Unet("resnet34", encoder_weights=None, in_channels=3, classes=4).cuda()
loss_fn = smp.losses.DiceLoss(smp.losses.MULTICLASS_MODE, from_logits=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
for epoch in range(2):
    model.train()
    for i in range(3):
        image, mask = torch.randn(4, 3, 256, 256).cuda(), torch.randint(0, 4, (4, 256, 256)).cuda()
        logits = model(image)
        loss = loss_fn(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.inference_mode():
        out = model(torch.randn(8, 3, 256, 256).cuda())
        truth = torch.randint(0, 4, (8, 256, 256)).cuda()
        print([s.shape for s in smp.metrics.get_stats(out.softmax(1).argmax(1), truth, mode="multiclass", num_classes=4)])

# SPDX-License-Identifier: Apache-2.0
# needs: timm
"""A vision transformer and a convolutional net as timm's script trains them: AMP with a scaler, an average of the weights."""
import numpy
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, NativeScaler

numpy.random.seed(0)
for name in ("vit_small_patch16_224", "resnet18"):
    model = timm.create_model(name, num_classes=100, drop_path_rate=0.1 if name[0] == "v" else 0.0).cuda()
    average = ModelEmaV3(model, decay=0.999, use_warmup=True)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=100)
    criterion, scaler = SoftTargetCrossEntropy(), NativeScaler()
    model.train()
    for i in range(4):
        images, target = mixup(torch.randn(8, 3, 224, 224).cuda(), torch.randint(0, 100, (8,)).cuda())
        with torch.autocast("cuda", torch.float16):
            loss = criterion(model(images), target)
        scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
        optimizer.zero_grad()
        average.update(model, step=i)
    average.module.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        print(name, average.module(torch.randn(16, 3, 224, 224).cuda()).shape)
    del model, average, optimizer, loss

# SPDX-License-Identifier: Apache-2.0
# needs: monai
"""MONAI: a 3D U-Net with Dice loss, then inference over sliding windows."""
import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.networks.nets import UNet

torch.manual_seed(0)
model = UNet(spatial_dims=3, in_channels=1, out_channels=3, channels=(16, 32, 64, 128), strides=(2, 2, 2), num_res_units=2).cuda()
loss_function = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(2):
    model.train()
    for i in range(3):
        inputs, labels = torch.randn(2, 1, 64, 64, 64).to("cuda"), torch.randint(0, 3, (2, 1, 64, 64, 64)).to("cuda")
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        image = torch.randn(1, 1, 96, 96, 96).to("cuda")
        print(sliding_window_inference(image, (64, 64, 64), 2, model).shape)

# SPDX-License-Identifier: Apache-2.0
# A segmentation without a backward pass, so that what is released early shows.
import torch
from monai.networks.nets import SegResNetDS
torch.manual_seed(0)
model = SegResNetDS(init_filters=16, in_channels=1, out_channels=2, blocks_down=(1, 2, 2), dsdepth=1).cuda().eval()
with torch.no_grad():
    for step in range(3):
        model(torch.randn(2, 1, 96, 96, 96, device="cuda"))
print("PEAK", torch.cuda.max_memory_allocated())

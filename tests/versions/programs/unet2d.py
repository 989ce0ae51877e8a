# SPDX-License-Identifier: Apache-2.0
# A training of the denoiser of an image diffusion model without text.
import torch
from diffusers import UNet2DModel
torch.manual_seed(0)
model = UNet2DModel(sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(64, 128), norm_num_groups=32,
                    down_block_types=("AttnDownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "AttnUpBlock2D")).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    x, t = torch.randn(16, 3, 32, 32, device="cuda"), torch.randint(0, 1000, (16,), device="cuda")
    model(x, t).sample.square().mean().backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())

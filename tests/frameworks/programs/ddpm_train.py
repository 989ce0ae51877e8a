# SPDX-License-Identifier: Apache-2.0
# needs: denoising_diffusion_pytorch
"""denoising-diffusion-pytorch: training, an average of the weights, sampling."""
import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from ema_pytorch import EMA

torch.manual_seed(0)
model = Unet(dim=32, dim_mults=(1, 2, 4), flash_attn=False).cuda()
diffusion = GaussianDiffusion(model, image_size=64, timesteps=1000, sampling_timesteps=3).cuda()
ema = EMA(diffusion, beta=0.995, update_every=2, update_after_step=0).cuda()
opt = torch.optim.Adam(diffusion.parameters(), lr=8e-5, betas=(0.9, 0.99))
for i in range(6):
    for _ in range(2):
        loss = diffusion(torch.rand(4, 3, 64, 64).cuda()) / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    ema.update()
ema.ema_model.eval()
with torch.inference_mode():
    print(ema.ema_model.sample(batch_size=4).shape)

# SPDX-License-Identifier: Apache-2.0
# needs: diffusers accelerate
"""Training of a diffusion model as the library's examples have it, on a U-Net and on a transformer; then samples."""
import torch
from accelerate import Accelerator
from diffusers import DDPMPipeline, DDPMScheduler, DiTTransformer2DModel, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from torch.utils.data import DataLoader, TensorDataset


def train(model, images, **more):
    accelerator = Accelerator(mixed_precision="fp16")
    noises = DDPMScheduler(num_train_timesteps=1000)
    average = EMAModel(model.parameters(), decay=0.999, use_ema_warmup=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    rows = DataLoader(TensorDataset(images), batch_size=4)
    schedule = get_cosine_schedule_with_warmup(optimizer, 1, len(rows))
    model, optimizer, rows, schedule = accelerator.prepare(model, optimizer, rows, schedule)
    average.to(accelerator.device)
    for (clean,) in rows:
        noise = torch.randn_like(clean)
        steps = torch.randint(0, 1000, (len(clean),), device=clean.device)
        noisy = noises.add_noise(clean, noise, steps)
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(noisy, steps, **more, return_dict=False)[0].float()[:, :clean.shape[1]], noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            average.step(model.parameters())
    average.store(model.parameters())
    average.copy_to(model.parameters())
    return accelerator.unwrap_model(model), noises


net = UNet2DModel(sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(64, 128, 256),
                  down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
net, noises = train(net, torch.randn(16, 3, 32, 32))
print(len(DDPMPipeline(net, noises)(batch_size=2, num_inference_steps=3, output_type="np").images))
del net
dit = DiTTransformer2DModel(num_attention_heads=8, attention_head_dim=48, in_channels=4, out_channels=8, num_layers=4, sample_size=32, patch_size=2)
train(dit, torch.randn(16, 4, 32, 32), class_labels=torch.zeros(4, dtype=torch.long).cuda())

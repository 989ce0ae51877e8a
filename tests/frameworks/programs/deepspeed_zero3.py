# SPDX-License-Identifier: Apache-2.0
# ranks: 1 2
# launch: torchrun
# needs: deepspeed transformers
"""DeepSpeed's engine at ZeRO stage 3, in bf16."""
import deepspeed
import torch
from transformers import GPT2Config, GPT2LMHeadModel

deepspeed.init_distributed()
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_positions=256, n_embd=512, n_layer=4, n_head=8, use_cache=False))
settings = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}, "gradient_clipping": 1.0}
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
made = torch.Generator().manual_seed(0)
for _ in range(6):
    ids = torch.randint(0, 8000, (4, 256), generator=made).to(engine.device)
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()

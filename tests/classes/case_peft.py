# SPDX-License-Identifier: Apache-2.0
"""Adapters from a library on a frozen language model, checkpointed layers, accumulation by the accelerate library."""
import gc

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

import runner
import truth

base = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=640, intermediate_size=1720, num_hidden_layers=5, num_attention_heads=10,
                                    num_key_value_heads=5, use_cache=False)).to(torch.bfloat16)
base.gradient_checkpointing_enable({"use_reentrant": False})
base.enable_input_require_grads()
model = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj", "down_proj"], lora_dropout=0.05))
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randint(0, 8000, (48, 256))), batch_size=8)
accelerator = Accelerator(gradient_accumulation_steps=2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
truth.model(model)
truth.optimizer(optimizer.optimizer)
batch = []
truth.holds("inputs", "the batch", lambda: batch)
# The library makes the first hidden state a leaf: PyTorch gathers a gradient for it too, which nobody asked for.
truth.holds("gradients", "gradient of a hidden state", lambda: [t.grad for t in gc.get_objects() if type(t) is torch.Tensor and t.is_leaf
            and t.grad is not None], or_else=["backward_temporaries"])
runner.mark_inside_backward(model.base_model.model.model.layers[2])
for (ids,) in data:
    batch[:] = [ids]
    with accelerator.accumulate(model):
        with truth.phase("forward"):
            loss = model(input_ids=ids, labels=ids).loss
        truth.mark("forward")
        with truth.phase("backward"):
            accelerator.backward(loss)
        truth.mark("backward")
        with truth.phase("step"):
            optimizer.step()
        truth.mark("step")
        optimizer.zero_grad()
truth.finish()

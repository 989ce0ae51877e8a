# SPDX-License-Identifier: Apache-2.0
# ranks: 2
# needs: accelerate transformers
"""Accelerate with weights in shards (FSDP2), wrapped by the class of the layers."""
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM

plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap", reshard_after_forward=True,
                                        transformer_cls_names_to_wrap=["LlamaDecoderLayer"])
accelerator = Accelerator(mixed_precision="bf16", fsdp_plugin=plugin)
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=6000, hidden_size=768, intermediate_size=2048, num_hidden_layers=4,
                                     num_attention_heads=12, num_key_value_heads=4, use_cache=False))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
rows = DataLoader(TensorDataset(torch.randint(0, 6000, (32, 256))), batch_size=4)
model, optimizer, rows = accelerator.prepare(model, optimizer, rows)
for (ids,) in rows:
    loss = model(input_ids=ids, labels=ids).loss
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
accelerator.end_training()

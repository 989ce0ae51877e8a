# SPDX-License-Identifier: Apache-2.0
# ranks: 1 2
# needs: transformers accelerate
"""The Trainer with an endless stream of rows, layers computed again in backward, and gradients that add up."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        made = torch.Generator().manual_seed(0)
        while True:
            row = torch.randint(0, 6000, (256,), generator=made)
            yield {"input_ids": row, "labels": row}


model = LlamaForCausalLM(LlamaConfig(vocab_size=6000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4,
                                     num_attention_heads=8, num_key_value_heads=4))
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=3, bf16=True,
                              gradient_checkpointing=True, save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=1)
Trainer(model=model, args=arguments, train_dataset=Stream()).train()

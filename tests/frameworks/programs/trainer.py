# SPDX-License-Identifier: Apache-2.0
# ranks: 1 2
# needs: transformers accelerate
"""The Trainer with its defaults in bf16, an evaluation at the end."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = torch.randint(0, 8000, (n, 192), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_positions=192, n_embd=512, n_layer=4, n_head=8))
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, max_steps=4, save_strategy="no", report_to=[],
                              bf16=True, disable_tqdm=True, eval_strategy="steps", eval_steps=2)
trainer = Trainer(model=model, args=arguments, train_dataset=Rows(64), eval_dataset=Rows(16))
trainer.train()
print(trainer.evaluate())

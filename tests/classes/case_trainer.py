# SPDX-License-Identifier: Apache-2.0
"""The Trainer of the transformers library with its defaults, marks from callbacks."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import runner
import truth


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        x = torch.randint(0, 6000, (192,))
        return {"input_ids": x, "labels": x.clone()}


class Marks(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, **kw):
        truth.mark("backward")

    def on_optimizer_step(self, args, state, control, **kw):
        truth.mark("step")

    def on_step_end(self, args, state, control, **kw):
        truth.mark("end")


class Own(Trainer):
    def compute_loss(self, model, inputs, *args, **kw):
        batch[:] = [inputs]
        with truth.phase("forward"):
            loss = super().compute_loss(model, inputs, *args, **kw)
        truth.mark("forward")
        return loss

    def create_optimizer(self, *args, **kw):
        opt = super().create_optimizer(*args, **kw)
        if not asked:
            asked.append(1)
            truth.holds("optimizer_state", "optimizer.state", lambda: list(self.optimizer.state.values()))
        return opt


batch, asked = [], []
truth.holds("inputs", "the batch", lambda: batch)
model = GPT2LMHeadModel(GPT2Config(vocab_size=6000, n_positions=192, n_embd=512, n_layer=4, n_head=8))
truth.model(model)
runner.mark_inside_backward(model.transformer.h[2])
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=5, gradient_accumulation_steps=2, max_steps=3, save_strategy="no",
                              report_to=[], logging_steps=1, bf16=True, dataloader_num_workers=0, disable_tqdm=True)
Own(model=model, args=arguments, train_dataset=Rows(), callbacks=[Marks()]).train()
truth.finish()

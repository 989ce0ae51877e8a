# SPDX-License-Identifier: Apache-2.0
# ranks: 1 2
# needs: accelerate transformers
"""Accelerate's own loop: a shuffled loader, a scheduler, clipped gradients, metrics gathered in an evaluation."""
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
made = torch.Generator().manual_seed(0)
rows = TensorDataset(torch.randint(0, 8000, (64, 128), generator=made), torch.randint(0, 2, (64,), generator=made))
train = DataLoader(rows, shuffle=True, batch_size=8)
test = DataLoader(rows, batch_size=16)
model = BertForSequenceClassification(BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=4, num_attention_heads=8,
                                                 intermediate_size=2048, num_labels=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 16)
model, optimizer, train, test, schedule = accelerator.prepare(model, optimizer, train, test, schedule)
for epoch in range(2):
    model.train()
    for ids, labels in train:
        with accelerator.accumulate(model):
            loss = model(input_ids=ids, labels=labels).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    for ids, labels in test:
        with torch.no_grad():
            said = model(input_ids=ids).logits.argmax(-1)
        said, labels = accelerator.gather_for_metrics((said, labels))
    accelerator.print(epoch, said.shape)

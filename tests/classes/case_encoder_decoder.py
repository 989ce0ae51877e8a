# SPDX-License-Identifier: Apache-2.0
"""T5 of the transformers library: shared embeddings, an encoder and a decoder, its own loss, warm-up, accumulation."""
import torch
from transformers import T5Config, T5ForConditionalGeneration, get_linear_schedule_with_warmup

import runner
import truth

model = T5ForConditionalGeneration(T5Config(vocab_size=8000, d_model=384, d_kv=64, d_ff=1024, num_layers=3, num_heads=6,
                                            decoder_start_token_id=0)).cuda().train()
optimizer = torch.optim.AdamW(
    [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
     {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0}], foreach=False)
schedule = get_linear_schedule_with_warmup(optimizer, 1, 10)
runner.declare(model, optimizer)
runner.mark_inside_backward(model.encoder.block[1])
batches = runner.Batches(lambda: {k: torch.randint(0, 8000, (12, n)).to("cuda") if k != "attention_mask" else torch.ones(12, n).cuda()
                                  for k, n in (("input_ids", 192), ("attention_mask", 192), ("labels", 128))})
for step in range(3):
    total = 0.0
    for part in range(2):
        batch = batches.next()
        with truth.phase("forward"):
            out = model(**batch)
            loss = out.loss / 2
        truth.mark("forward")
        with truth.phase("backward"):
            loss.backward()
        total += loss.item()
        truth.mark("backward")
    with truth.phase("step"):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    schedule.step()
    truth.mark("step")
    optimizer.zero_grad()
truth.finish()

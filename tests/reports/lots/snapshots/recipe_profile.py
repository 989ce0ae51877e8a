# SPDX-License-Identifier: Apache-2.0
"""A finetuning recipe whose profiler records two steps after some that it skips. Nothing fails; a person asks what takes the memory."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

WAIT, WARMUP, ACTIVE = 2, 1, 2


class Recipe:
    def setup(self):
        config = LlamaConfig(hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6, vocab_size=32000)
        with torch.device("cuda"):
            self._model = LlamaForCausalLM(config)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), fused=True)

    def _loss_step(self, batch):
        labels = batch.pop("labels")
        logits = self._model(**batch, use_cache=False).logits
        labels = torch.hstack((labels[..., 1:], torch.full((len(labels), 1), -100, device="cuda")))
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), labels.reshape(-1))
        del logits
        return loss

    def train(self, folder):
        running_loss = 0
        for idx in range(WAIT + WARMUP + ACTIVE + 1):
            ids = torch.randint(0, 32000, (4, 512))
            batch = {"input_ids": ids, "labels": ids.clone()}
            if idx == WAIT + WARMUP:
                torch.cuda.memory._record_memory_history()
            batch = {k: v.cuda() for k, v in batch.items()}
            loss = self._loss_step(batch)
            running_loss += loss.detach()
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            if idx == WAIT + WARMUP + ACTIVE - 1:
                torch.cuda.memory._dump_snapshot(str(folder / "rank0_memory_snapshot.pickle"))
                torch.cuda.memory._record_memory_history(enabled=None)


recipe = Recipe()
recipe.setup()
recipe.train(Path(sys.argv[1]))

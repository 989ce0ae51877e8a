# SPDX-License-Identifier: Apache-2.0
"""Two ranks of a policy update. Each writes its own file when its memory runs out."""
import os
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

FOLDER = Path(sys.argv[1])


class Sampler:
    def __init__(self, tag):
        self.tag = tag

    def dump(self):
        torch.cuda.synchronize()
        torch.cuda.memory._dump_snapshot(str(FOLDER / f"{self.tag}_rank{os.environ['RANK']}_pid{os.getpid()}.pickle"))


class Actor:
    def __init__(self, vocabulary=32000):
        config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, vocab_size=vocabulary,
                             max_position_embeddings=8192)
        with torch.device("cuda"):
            self.module = LlamaForCausalLM(config).to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-6)

    def log_probs_and_entropy(self, ids):
        logits = self.module(input_ids=ids, use_cache=False).logits
        logits = logits.float().div_(1.0)
        logp = F.log_softmax(logits[:, :-1], dim=-1)
        entropy = torch.logsumexp(logits, dim=-1) - (F.softmax(logits, dim=-1) * logits).sum(-1)
        return logp.gather(-1, ids[:, 1:, None]).squeeze(-1), entropy

    def update_policy(self, batches):
        for ids, advantages in batches:
            logp, entropy = self.log_probs_and_entropy(ids)
            loss = -(torch.exp(logp - logp.detach()) * advantages).mean() - 0.001 * entropy.mean()
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def rank_main(rank):
    torch.cuda.set_device(rank)
    torch.cuda.memory._record_memory_history(context="all", stacks="all", max_entries=200_000)
    actor, sampler = Actor(), Sampler("update_actor")
    try:
        for step in range(3):
            # the groups of a step are not of one length: rank 1 gets the long one
            lengths = (768, 768) if rank == 0 else (768, 768 + 640 * step)
            actor.update_policy((torch.randint(0, 32000, (1, n), device="cuda"), torch.randn(1, 1, device="cuda")) for n in lengths)
        sampler.tag = "end"
        sampler.dump()
    except torch.OutOfMemoryError:
        sampler.dump()
        raise


if "RANK" in os.environ:
    rank_main(int(os.environ["RANK"]))
else:
    ranks = [subprocess.Popen([sys.executable, __file__, FOLDER], env={**os.environ, "RANK": str(i)}) for i in range(2)]
    print([r.wait() for r in ranks])

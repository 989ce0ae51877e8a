# SPDX-License-Identifier: Apache-2.0
"""The reference and policy log probabilities of responses in PPO training of a small language model."""
import sys

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

MODE = sys.argv[1]


def log_probs_from_logits(logits, labels):
    if MODE == "fixed":
        picked = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        norm = torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
        return picked - norm
    log_probs = torch.log_softmax(logits, dim=-1)
    return log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


class Actor:
    def __init__(self, config):
        self.model = Qwen2ForCausalLM(config).cuda()

    def score(self, sequences):
        logits = self.model(sequences, use_cache=False).logits
        return log_probs_from_logits(logits[:, :-1], sequences[:, 1:])


class ExperienceMaker:
    def __init__(self, actor, reference):
        self.actor, self.reference = actor, reference

    @torch.no_grad()
    def make(self, sequences):
        old = self.actor.score(sequences)
        base = self.reference.score(sequences)
        return old, old - base


def main():
    config = Qwen2Config(vocab_size=32768, hidden_size=512, intermediate_size=1408, num_hidden_layers=4,
                         num_attention_heads=8, num_key_value_heads=4)
    actor, reference = Actor(config), Actor(config)
    maker = ExperienceMaker(actor, reference)
    optimizer = torch.optim.AdamW(actor.model.parameters(), lr=1e-6)
    for _ in range(3):
        sequences = torch.randint(32768, (16, 512), device="cuda")
        old, kl = maker.make(sequences)
        for micro in range(0, 16, 2):
            rows = slice(micro, micro + 2)
            ratio = (actor.score(sequences[rows]) - old[rows]).exp()
            loss = -(ratio * -kl[rows]).mean() / 8
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()

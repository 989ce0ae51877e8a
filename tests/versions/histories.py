# SPDX-License-Identifier: Apache-2.0
"""Histories of public repositories, the commit in each that changed the peak of a program, and what its message or its pull request
says. {data} in a command is a folder of random tokens."""
from dataclasses import dataclass

from pairs import SKLEARN, T


@dataclass
class History:
    name: str
    repository: str
    good: str
    bad: str
    command: list  # a program of ours, or one of the repository with its options
    specs: str  # packages
    commit: str  # that is right
    where: str  # as of pairs.py
    reason: str
    words: str
    source: str


NANO = "https://github.com/karpathy/nanoGPT"
TRAIN = ("train.py --dataset={data} --out_dir={data} --compile=False --batch_size=4 --block_size=256 --n_layer=4 --n_head=4 --n_embd=256 "
         "--eval_iters=1 --max_iters=3").split()
SBERT = "https://github.com/UKPLab/sentence-transformers"
HISTORIES = [
    History("nano-gelu", NANO, "fe8042867ca4", "3adf61e154c3", ["nano_gpt.py"], "", "594068e7ae8a", r"new_gelu|MLP\.forward", "^(Gone|Less).*activations",
            "nn.GELU in place of a function of many operators", "pull request 274"),
    History("nano-flash", NANO, "fe8042867ca4", "d2705bd92a90", ["nano_gpt.py"], "", "ae06d0b15a91", r"CausalSelfAttention\.forward", "^(Gone|Less).*activations",
            "attention by scaled_dot_product_attention", "the commit's message"),
    History("nano-tied", NANO, "8b2e622b275f", "cf9991488629", TRAIN, "", "7c8288552b36", r"train\.py|GPT", "^A smaller model: .*parameters -",
            "the last layer has the weights of the embedding", "the commit's message"),
    History("nano-accumulate", NANO, "cf9991488629", "0e90ee9d4861", TRAIN, "", "001c1e7be708", "", "^More gradients.* a step has 5 backward passes instead of 1",
            "gradients are summed up over 5 passes", "the commit's message"),
    History("navit", "https://github.com/lucidrains/vit-pytorch", "1123063a5e6e", "69d24fe9e302", ["navit.py"], "einops==0.8.1", "a1ee1daa1a75",
            r"Attention\.forward na_vit\.py", "^(Gone|Less).*activations", "attention by scaled_dot_product_attention", "pull request 353"),
    History("sbert-one-pass", SBERT, "c1775a67a361", "afdf692037fe", ["sbert_cached.py"], SKLEARN + T, "348190d46b0c", r"CachedMultipleNegativesRankingLoss\.py|util\.py",
            "^A step has 2 backward passes instead of 6", "one backward pass for all parts of a loss", "pull request 3068"),
]

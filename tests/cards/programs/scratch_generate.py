# SPDX-License-Identifier: Apache-2.0
"""scratch_generate.py llama3|qwen3: the models of "Build a Large Language Model From Scratch" continue a question by 150 tokens, as the
book's READMEs say. Weights are not set; the question is 20 random tokens."""
import os
import sys

import torch

sys.path.insert(0, os.environ["SOURCE"] + "/pkg")


def model(name):
    for kind in (torch.nn.Linear, torch.nn.Embedding):
        kind.reset_parameters = lambda self: None
    if name == "llama3":
        from llms_from_scratch.llama3 import LLAMA32_CONFIG_1B, Llama3Model
        return Llama3Model(LLAMA32_CONFIG_1B), LLAMA32_CONFIG_1B, dict(top_k=1, temperature=0.0)
    from llms_from_scratch.qwen3 import QWEN_CONFIG_06_B, Qwen3Model
    return Qwen3Model(QWEN_CONFIG_06_B), QWEN_CONFIG_06_B, dict(top_k=1, temperature=0.0)


def main(name):
    for missing in ("tiktoken", "tiktoken.load", "matplotlib", "matplotlib.pyplot", "matplotlib.ticker"):
        sys.modules.setdefault(missing, __import__("unittest.mock").mock.MagicMock())
    made, config, how = model(name)
    made.to("cuda")
    from llms_from_scratch.ch05 import generate
    generate(model=made, idx=torch.randint(1000, (1, 20)).to("cuda"), max_new_tokens=150, context_size=config["context_length"], **how)
    print(f"Max memory allocated: {torch.cuda.max_memory_allocated() / 2**30:.4f} GB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

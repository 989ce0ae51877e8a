# SPDX-License-Identifier: Apache-2.0
"""bert_inference.py eager|sdpa BATCH LENGTH: BERT in float16 with its head for words and a mask, passes without gradients, as the benchmark of
pull request 28802 of transformers says. Weights are not set."""
import sys

import torch

sys.modules["torchao"] = None  # older in this environment than transformers asks for

from transformers import BertConfig, BertLMHeadModel  # noqa: E402

PASSES = 50


def main(how, batch, length):
    torch.set_default_dtype(torch.float16)
    model = BertLMHeadModel._from_config(BertConfig(), torch_dtype=torch.float16, attn_implementation=how).to("cuda").eval()
    torch.set_default_dtype(torch.float32)
    words = torch.randint(30000, (int(batch), int(length)), dtype=torch.int64).to("cuda")
    mask = torch.ones(int(batch), int(length), dtype=torch.int64).to("cuda")
    with torch.inference_mode():
        for _ in range(2):
            model(words, mask)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(PASSES):
            said = model(words, mask)  # noqa: F841
    print(f"memory: {torch.cuda.max_memory_allocated() * 1e-6:.3f} MB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

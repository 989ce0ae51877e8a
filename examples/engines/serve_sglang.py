# SPDX-License-Identifier: Apache-2.0
"""serve_sglang.py MODEL [--mem-fraction-static X] [--context-length N]: SGLang as its documentation starts it, with random weights of the
model's configuration, and four answers."""
import argparse

import sglang

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--mem-fraction-static", type=float)
    parser.add_argument("--context-length", type=int, default=2048)
    o = parser.parse_args()
    engine = sglang.Engine(model_path=o.model, load_format="dummy", skip_tokenizer_init=True, log_level="info",
                           mem_fraction_static=o.mem_fraction_static, context_length=o.context_length)
    prompts = [list(range(10, 60 + i)) for i in range(4)]
    engine.generate(input_ids=prompts, sampling_params={"max_new_tokens": 8, "ignore_eos": True})
    engine.shutdown()

# SPDX-License-Identifier: Apache-2.0
"""serve.py MODEL [--gpu-memory-utilization X] [--max-model-len N] [--sleep]: vLLM as its documentation starts it, with random weights of the
model's configuration, and four answers."""
import argparse

from vllm import LLM, SamplingParams

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    parser.add_argument("--max-model-len", type=int, default=2048)
    parser.add_argument("--sleep", action="store_true")
    o = parser.parse_args()
    engine = LLM(model=o.model, load_format="dummy", skip_tokenizer_init=True, gpu_memory_utilization=o.gpu_memory_utilization,
                 max_model_len=o.max_model_len, enable_sleep_mode=o.sleep)
    prompts = [{"prompt_token_ids": list(range(10, 60 + i))} for i in range(4)]
    settings = SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False)
    engine.generate(prompts, settings)
    if o.sleep:
        engine.sleep(level=1)
        engine.wake_up()
        engine.generate(prompts, settings)

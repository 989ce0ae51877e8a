# SPDX-License-Identifier: Apache-2.0
"""vllm_generate.py FOLDER [NAME=VALUE...]: a vLLM engine starts as its documentation has it, with random weights of the shape in
FOLDER/config.json and these arguments, and answers four prompts."""
import json
import sys

from vllm import LLM, SamplingParams

if __name__ == "__main__":
    arguments = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[2:])}
    engine = LLM(model=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, **arguments)
    prompts = [{"prompt_token_ids": list(range(10, 60 + i))} for i in range(4)]
    answers = engine.generate(prompts, SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False))
    print("answered", [len(answer.outputs[0].token_ids) for answer in answers])

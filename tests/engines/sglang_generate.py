# SPDX-License-Identifier: Apache-2.0
"""sglang_generate.py FOLDER [NAME=VALUE...]: an SGLang engine starts as its documentation has it, with random weights of the shape in
FOLDER/config.json and these arguments, and answers four prompts."""
import json
import sys

import sglang

if __name__ == "__main__":
    arguments = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[2:])}
    engine = sglang.Engine(model_path=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, log_level="info", **arguments)
    prompts = [list(range(10, 60 + i)) for i in range(4)]
    answers = engine.generate(input_ids=prompts, sampling_params={"max_new_tokens": 8, "ignore_eos": True, "temperature": 0})
    print("answered", [len(answer["output_ids"]) for answer in answers], flush=True)
    engine.shutdown()

# SPDX-License-Identifier: Apache-2.0
"""grpo.py MODEL [--sleep]: GRPO of TRL with vLLM in the trainer's process, as people start it; prompts and rewards are made up."""
import os
import sys

os.environ.update({"VLLM_USE_V2_MODEL_RUNNER": "0", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577"})
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


def reward(completions, **_):
    return [float(len(text) % 7) for text in completions]


if __name__ == "__main__":
    prompts = [{"prompt": " ".join(f"w{(7 * i + j) % 900}" for j in range(30))} for i in range(32)]
    args = GRPOConfig(output_dir="out", per_device_train_batch_size=8, num_generations=8, max_completion_length=64, max_steps=3, bf16=True,
                      use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.3, vllm_max_model_length=256,
                      vllm_enable_sleep_mode="--sleep" in sys.argv, report_to="none", save_strategy="no")
    GRPOTrainer(model=sys.argv[1], reward_funcs=reward, train_dataset=Dataset.from_list(prompts), args=args).train()

# SPDX-License-Identifier: Apache-2.0
"""megatron.py: Megatron-LM's pretrain_gpt with the settings of its functional test gpt3_mcore_tp2_pp2_uninstall_te, for a few updates: its own
lines about memory. In place of the files: rows of zeros with the mask that its data set makes, a tokenizer of as many words."""
import os
import sys
from functools import partial
from types import SimpleNamespace
from unittest.mock import MagicMock

os.environ.update({"CUDA_DEVICE_MAX_CONNECTIONS": "1", "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0", "NCCL_ALGO": "Ring", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"})

import torch  # noqa: E402

SOURCE = os.environ["SOURCE"]
LENGTH, WORDS = 1024, 50256
TEST = {"num-layers": 12, "hidden-size": 512, "num-attention-heads": 8, "micro-batch-size": 4, "global-batch-size": 32, "seq-length": LENGTH, "max-position-embeddings": LENGTH,
        "timing-log-level": 0, "lr-decay-iters": 320000, "distributed-backend": "nccl", "lr": 0.00015, "lr-decay-style": "cosine", "min-lr": 1.0e-5, "weight-decay": 1e-2, "clip-grad": 1.0,
        "lr-warmup-fraction": .01, "log-interval": 1, "eval-interval": 1000, "eval-iters": 0, "transformer-impl": "local", "tensor-model-parallel-size": 2,
        "pipeline-model-parallel-size": 2, "ckpt-format": "torch_dist"}
FLAGS = ("log-params-norm", "log-num-zeros-in-grad", "log-validation-ppl-to-tensorboard", "log-timers-to-tensorboard", "no-persist-layer-norm", "no-masked-softmax-fusion",
         "deterministic-mode", "no-gradient-accumulation-fusion", "use-mcore-models", "fp16", "apply-query-key-layer-scaling", "log-memory-to-tensorboard")
GIVEN = {"train-iters": 4, "tokenizer-type": "NullTokenizer", "vocab-size": WORDS, "tensorboard-dir": "board"}
SAID = {"mem-max-allocated-bytes": "peak", "mem-allocated-bytes": "at the end"}


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, i):
        tokens = torch.zeros(LENGTH, dtype=torch.int64)
        return {"tokens": tokens, "labels": tokens, "loss_mask": torch.ones(LENGTH), "position_ids": torch.arange(LENGTH),
                "attention_mask": torch.ones(1, LENGTH, LENGTH).tril().logical_not()}


class Writer:
    def __init__(self, *words, **settings):
        pass

    def add_scalar(self, name, value, *words):
        if name in SAID:
            print(f"{SAID[name]}: {value / 2**20:.3f} MiB", flush=True)

    def __getattr__(self, name):
        return lambda *words, **settings: None


def data(*words, **settings):
    return Rows(), None, None


def main():
    sys.path[0] = SOURCE  # in place of this folder, whose megatron.py has the name of a folder there
    sys.modules["torch.utils.tensorboard"] = SimpleNamespace(SummaryWriter=Writer)
    import megatron.core.datasets.utils
    import megatron.legacy.fused_kernels
    megatron.legacy.fused_kernels.load = lambda args: None  # asks nvcc which version it is: no kernel is fused here
    megatron.core.datasets.utils.compile_helpers = lambda: None
    sys.modules["megatron.core.datasets.helpers_cpp"] = MagicMock()
    sys.argv = ["pretrain_gpt.py", *(word for name, value in {**TEST, **GIVEN}.items() for word in ("--" + name, str(value))), *("--" + name for name in FLAGS)]
    import pretrain_gpt as program
    data.is_distributed = True
    program.pretrain(data, partial(program.model_provider, program.gpt_builder), program.ModelType.encoder_or_decoder, program.forward_step)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""titan.py [NAME=DEGREE]...: a rank of torchtitan's trainer with its small Llama (or model=deepseek_v3), as torchrun would start it;
NAME as in its section of parallelism, without _degree (tensor_parallel=2, pipeline_parallel=2)."""
import importlib
import sys
from dataclasses import replace

import torch
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.config import JobConfig
from torchtitan.protocols.train_spec import register_train_spec
from torchtitan.train import Trainer


class Rows(torch.utils.data.IterableDataset):
    def __iter__(self):
        made = torch.Generator().manual_seed(0)
        while True:
            row = torch.randint(0, 2048, (513,), generator=made)
            yield {"input": row[:-1]}, row[1:]


def loader(dp_world_size, dp_rank, tokenizer, job_config):
    return ParallelAwareDataloader(Rows(), dp_rank, dp_world_size, batch_size=job_config.training.local_batch_size)


def main():
    given = dict(a.split("=") for a in sys.argv[1:])
    spec = importlib.import_module(f"torchtitan.models.{given.pop('model', 'llama3')}").get_train_spec()
    register_train_spec("rows", replace(spec, build_dataloader_fn=loader, build_tokenizer_fn=None))
    job = JobConfig()
    job.model.name, job.model.flavor = "rows", "debugmodel"
    job.training.local_batch_size, job.training.seq_len, job.training.steps = 4, 512, 5
    job.lr_scheduler.warmup_steps = 2
    for name, degree in given.items():
        setattr(job.parallelism, name + "_degree", int(degree))
    trainer = Trainer(job)
    trainer.train()
    trainer.close()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

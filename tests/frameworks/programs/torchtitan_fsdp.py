# SPDX-License-Identifier: Apache-2.0
# ranks: 2
# needs: torchtitan
"""torchtitan's trainer with its small Llama, weights in shards."""
from dataclasses import replace

import torch
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.config import JobConfig
from torchtitan.models.llama3 import get_train_spec
from torchtitan.protocols.train_spec import register_train_spec
from torchtitan.train import Trainer


class Rows(torch.utils.data.IterableDataset):
    def __iter__(self):
        made = torch.Generator().manual_seed(0)
        while True:
            row = torch.randint(0, 2048, (1025,), generator=made)
            yield {"input": row[:-1]}, row[1:]


def loader(dp_world_size, dp_rank, tokenizer, job_config):
    return ParallelAwareDataloader(Rows(), dp_rank, dp_world_size, batch_size=job_config.training.local_batch_size)


register_train_spec("llama3_rows", replace(get_train_spec(), build_dataloader_fn=loader, build_tokenizer_fn=None))
job = JobConfig()
job.model.name, job.model.flavor = "llama3_rows", "debugmodel"
job.training.local_batch_size, job.training.seq_len, job.training.steps = 4, 1024, 4
job.lr_scheduler.warmup_steps = 2
job.parallelism.tensor_parallel_degree = 1
job.activation_checkpoint.mode = "selective"
trainer = Trainer(job)
trainer.train()
trainer.close()
torch.distributed.destroy_process_group()

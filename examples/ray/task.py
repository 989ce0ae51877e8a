# SPDX-License-Identifier: Apache-2.0
"""A Ray task whose worker is recorded: the runtime environment loads the library into the worker, and into nothing else.
Usage: task.py LIBRARY FOLDER (LIBRARY: libgpumemtrace.so, or several files with colons between them)"""
import sys

import ray


def train():
    import torch

    weight = torch.nn.Linear(1024, 1024).cuda()
    weight(torch.ones(256, 1024, device="cuda")).sum().backward()
    return torch.cuda.max_memory_allocated()


def main(library, folder):
    ray.init(include_dashboard=False, log_to_driver=False)
    env = {"LD_PRELOAD": library, "GPUMEMTRACE_OUTPUT": folder + "/%h.%p.gmt"}
    print(ray.get(ray.remote(train).options(runtime_env={"env_vars": env}).remote()))


main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""revgnn.py LAYERS WIDTH DROPOUT: RevGNN's own training on ogbn-proteins as its README says, until it says its peak after the first epoch. In
place of the download: a graph of the same numbers of nodes and edges, of which a random tenth of the nodes keeps a hundredth of the edges.
The package torch_scatter has no build here; its `max` is written with the same tensors."""
import os
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy
import torch

NODES, EDGES, TRAINED, TASKS = 132_534, 79_122_504, 86_619, 112
SOURCE = os.environ["SOURCE"]


class Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, src, index, dim, size):
        shape = list(src.shape)
        shape[dim] = size
        out = torch.empty(shape, dtype=src.dtype, device=src.device)
        where = torch.full(shape, src.shape[dim], dtype=torch.int64, device=src.device)
        out.masked_fill_(where == src.shape[dim], 0)
        ctx.save_for_backward(index, where)
        ctx.dim, ctx.shape = dim, list(src.shape)
        return out

    @staticmethod
    def backward(ctx, grad):
        shape = [n + (i == ctx.dim % len(ctx.shape)) for i, n in enumerate(ctx.shape)]
        back = torch.zeros(shape, dtype=grad.dtype, device=grad.device)
        back.scatter_(ctx.dim, ctx.saved_tensors[1], grad)
        return back.narrow(ctx.dim, 0, ctx.shape[ctx.dim]), None, None, None


def scatter(src, index, dim=-1, out=None, dim_size=None, reduce="sum"):
    return Largest.apply(src, index, dim, dim_size)


class Graph:
    num_tasks, total_no_of_nodes = TASKS, NODES

    def __init__(self, dataset_name):
        self.x, self.y = torch.zeros(NODES, 8), torch.zeros(NODES, TASKS)
        self.edge_attr, self.train_idx = torch.zeros(EDGES // 50, 8), torch.arange(TRAINED)

    def extract_node_features(self, how):
        torch.save(torch.zeros(NODES, 8), "node_features.pt")
        return "node_features.pt"

    def random_partition_graph(self, nodes, cluster_number=10):
        return numpy.random.default_rng(1).integers(0, cluster_number, nodes)

    def generate_sub_graphs(self, parts, cluster_number=10):
        nodes = [numpy.where(parts == i)[0] for i in range(cluster_number)]
        counts = [round(EDGES * (len(n) / NODES) ** 2) for n in nodes]
        return nodes, [torch.zeros(2, n, dtype=torch.int64) for n in counts], [torch.zeros(n, dtype=torch.int64) for n in counts], None


def told(message, *words):
    if str(message).startswith("Peak"):
        print(f"peak: {torch.cuda.max_memory_allocated() / 2**30:.4f} GiB", flush=True)
        os._exit(0)


def main(layers, width, dropout):
    from torch_geometric.nn import MessagePassing
    sys.path[:0] = [SOURCE, SOURCE + "/examples/ogb_eff/ogbn_proteins"]
    for name in ("ogb", "ogb.nodeproppred", "ogb.graphproppred", "ogb.graphproppred.mol_encoder", "ogb.utils", "ogb.utils.features", "torch_cluster", "sklearn", "sklearn.metrics", "h5py"):
        sys.modules[name] = MagicMock()
    sys.modules["torch_scatter"] = SimpleNamespace(scatter=scatter, scatter_softmax=None, scatter_add=scatter, __spec__=None, __version__="2.0")
    sys.modules["dataset"] = SimpleNamespace(OGBNDataset=Graph)
    MessagePassing.aggregate = lambda self, inputs, index, ptr=None, dim_size=None: scatter(inputs, index, dim=self.node_dim, dim_size=dim_size, reduce="max")
    sys.argv = ["main.py", "--use_gpu", "--conv_encode_edge", "--use_one_hot_encoding", "--block", "res+", "--gcn_aggr", "max", "--num_layers", layers, "--hidden_channels", width,
                "--lr", "0.001", "--backbone", "rev", "--dropout", dropout, "--group", "2"]
    import main as program
    program.logging.info = told
    program.main()


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""retinanet.py first|later: MLPerf's single stage detector, a copy of torchvision's references, with batch 32 and the rest as it is by default:
its first line about memory, or those until update 60. In place of OpenImages: images of 1,024 x 768 with seven boxes."""
import os
import sys
import types
from unittest.mock import MagicMock

import torch

BATCH, BOXES = 32, 7


class Images(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return torch.zeros(3, 768, 1024), {"boxes": torch.tensor([[10.0, 10.0, 300.0, 300.0]] * BOXES), "labels": torch.ones(BOXES, dtype=torch.int64),
                                           "image_id": torch.tensor([i]), "area": torch.ones(BOXES), "iscrowd": torch.zeros(BOXES, dtype=torch.int64)}


def main(what):
    folder = os.environ["SOURCE"] + "/retired_benchmarks/retinanet/ssd"
    sys.path.insert(0, folder)
    import torch._dynamo
    import torchvision
    for name in ("pycocotools", "pycocotools.coco", "pycocotools.cocoeval", "pycocotools.mask", "mlperf_logging", "mlperf_logging.mllog", "mlperf_logging.mllog.constants",
                 "ssd_logger", "coco_utils", "coco_eval"):
        sys.modules[name] = MagicMock()
    sys.modules["torch._six"] = types.SimpleNamespace(string_classes=(str,))
    import model.resnet
    import train
    model.resnet.load_state_dict_from_url = lambda *words, **settings: None
    model.resnet.ResNet.load_state_dict = lambda self, values: None
    data = Images(BATCH * (1 if what == "first" else 61))
    train.get_dataset_fn = lambda name: (lambda **settings: data, 264)
    train.evaluate = lambda *words, **settings: types.SimpleNamespace(get_stats=lambda: {"bbox": [1.0]})
    sys.argv = ["train.py", "--batch-size", str(BATCH), "--epochs", "1", "--workers", "0", "--seed", "1"]
    train.main(train.parse_args())


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""elsewhere.py FILE MAP_LOCATION: a rank that works on its device and reads a checkpoint that another rank wrote from device 0."""
import os
import sys

import torch

rank = int(os.environ["RANK"])
home = torch.device("cuda", rank % torch.cuda.device_count())
torch.cuda.set_device(home)
weights = torch.ones(8 << 20, device=home)
if not os.path.exists(sys.argv[1]):
    torch.save(weights, sys.argv[1])
state = torch.load(sys.argv[1], **{"map_location": home} if sys.argv[2] == "home" else {})
weights.add_(state.to(home))
gradients = weights.square()
print(state.device.index, torch.cuda.max_memory_reserved(0))

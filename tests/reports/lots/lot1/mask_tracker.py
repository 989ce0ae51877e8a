# SPDX-License-Identifier: Apache-2.0
"""Video object segmentation: each frame is segmented with the memory of the frames before."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
MEMORIES = 6


class Tracker(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 64, 7, 8, 3), nn.GELU(), nn.Conv2d(64, width, 3, 2, 1))
        self.memory = nn.Sequential(nn.Conv2d(width + 1, 64, 3, padding=1), nn.GELU(), nn.Conv2d(64, 64, 1))
        self.attend = nn.MultiheadAttention(width, 4, kdim=64, vdim=64, batch_first=True)
        self.mask = nn.ConvTranspose2d(width, 1, 4, 4)

    def condition(self, features, past):
        if not past:
            return features
        bank = torch.cat([m.flatten(2).transpose(1, 2) for m in past], 1)
        tokens = features.flatten(2).transpose(1, 2)
        tokens = tokens + self.attend(tokens, bank, bank, need_weights=False)[0]
        return tokens.transpose(1, 2).view_as(features)

    def forward(self, frame, past):
        features = self.image(frame)
        low = self.mask(self.condition(features, past))
        small = nn.functional.interpolate(low, size=features.shape[2:])
        return {"pred_masks": low, "high": nn.functional.interpolate(low, scale_factor=4),
                "maskmem": self.memory(torch.cat([features, small], 1)), "features": features}


class Predictor:
    def __init__(self):
        self.model = Tracker().cuda().eval()

    def init_state(self, frames):
        return {"frames": frames, "outputs": {}}

    @torch.inference_mode()
    def propagate(self, state):
        for t, frame in enumerate(state["frames"]):
            past = [state["outputs"][i]["maskmem"] for i in range(max(0, t - MEMORIES), t)]
            out = self.model(frame[None].cuda(), past)
            state["outputs"][t] = out
            if MODE == "fixed":
                state["outputs"].pop(t - MEMORIES, None)
            yield t, (out["high"][0] > 0).cpu()


def main():
    predictor = Predictor()
    state = predictor.init_state(torch.randn(96, 3, 640, 640))
    for t, mask in predictor.propagate(state):
        if t % 24 == 0:
            print(t, mask.shape)


main()

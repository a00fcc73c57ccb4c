"""torch keeps the mode of a decorator while a generator runs."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)

    def embed(self, x):
        return self.encoder(x)


class VideoPredictor:
    def __init__(self):
        self.model = self.build()

    def build(self):
        net = Net()
        net.eval()
        return net

    @torch.inference_mode()
    def propagate(self, frames):
        for i in range(len(frames)):
            yield i, self.one_frame(frames, i)

    def one_frame(self, frames, i):
        return self.model.embed(frames[i])


if __name__ == "__main__":
    for i, each in VideoPredictor().propagate(torch.rand(3, 1, 4)):
        print(i, each.requires_grad)

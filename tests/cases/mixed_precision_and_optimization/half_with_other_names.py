"""A model that is cast to float16 and trained, in a program that speaks of float32 elsewhere."""

import numpy as np
import torch
from torch import nn


def images(count):
    return torch.from_numpy(np.random.default_rng(0).random((count, 64)).astype(np.float32))


torch.set_float32_matmul_precision("high")
model = nn.Linear(64, 10).cuda()
model = model.half()  # expect: half-model-trained
optimizer = torch.optim.Adam(model.parameters())
for batch in images(1000).split(100):
    optimizer.zero_grad()
    model(batch.cuda().half()).mean().backward()
    optimizer.step()


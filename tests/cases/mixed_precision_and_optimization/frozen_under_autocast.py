"""A frozen encoder under autocast; what is trained computes in float32."""

import torch
from torch import nn
import torchvision

enc = torchvision.models.resnet18().cuda().eval()
for p in enc.parameters():
    p.requires_grad_(False)
head = nn.Linear(1000, 10).cuda()
opt = torch.optim.SGD(head.parameters(), lr=0.1)


def run(loader):
    for x, y in loader:
        with torch.autocast("cuda"):
            f = enc(x)
        loss = nn.functional.cross_entropy(head(f.float()), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

"""Parts of a model are called by a program that trains nothing."""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
        self.dec = nn.Conv2d(8, 3, 3)

    def encode(self, images):
        content = self.enc(images)
        return content

    def decode(self, content):
        images = self.dec(content)
        return images


class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen = Generator()
        self.opt = torch.optim.Adam(self.gen.parameters())

    def gen_update(self, x):
        self.opt.zero_grad()
        loss = self.gen.decode(self.gen.encode(x)).abs().mean()
        loss.backward()
        self.opt.step()


trainer = Trainer()
trainer.load_state_dict(torch.load("gen.pt", weights_only=True))
trainer.eval()
encode = trainer.gen.encode
decode = trainer.gen.decode
for i, images in enumerate(torch.utils.data.DataLoader(torch.randn(9, 3, 16, 16))):
    content = encode(images)  # expect: eval-builds-graph
    for j in range(4):
        outputs = decode(content)  # expect: eval-builds-graph
        torch.save(outputs.data, f"{i}_{j}.pt")

"""An evaluation that the program calls under no_grad(); a part of a model that one asks for with gradients on."""

import torch
from torch import nn, optim


class Voice(nn.Module):
    def __init__(self):
        super().__init__()
        self.ups = nn.ModuleList([nn.Linear(4, 8), nn.LeakyReLU(0.4)])
        self.out = nn.Linear(8, 1)

    def upsample(self, c):
        for f in self.ups:
            c = f(c)
        return c

    def forward(self, c):
        return self.out(self.upsample(c))


def speak(path):
    voice = Voice()
    voice.load_state_dict(torch.load(path, weights_only=True))
    voice.eval()
    for c in torch.rand(3, 2, 4):
        up = voice.upsample(c)  # expect: eval-builds-graph
        with torch.no_grad():
            wave = voice.out(up)
        print(wave.sum().item())


def fit(sets, epochs=10):
    body, head = nn.Linear(8, 4), nn.Linear(4, 2)
    optimizer = optim.AdamW([*body.parameters(), *head.parameters()])
    for _ in range(epochs):
        latest = {}
        for name in sets:
            for x, y in sets[name]:
                optimizer.zero_grad()
                h = body(x)
                loss = nn.functional.cross_entropy(head(h), y)
                latest[name] = h  # one for each name
                for other, seen in latest.items():
                    if other != name:
                        loss = loss + (h.mean(0) - seen.detach().mean(0)).square().sum()
                loss.backward()
                optimizer.step()


class EdgeFilter(nn.Module):
    def __init__(self, cuda: bool = False):
        super().__init__()
        if cuda:
            taps = torch.cuda.FloatTensor([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
        else:
            taps = torch.FloatTensor([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
        self.taps = nn.Parameter(data=taps[None, None], requires_grad=False)
        if cuda:
            self.taps.cuda(non_blocking=True)  # it is there

    def forward(self, image):
        return nn.functional.conv2d(image, self.taps, padding=1)


if __name__ == "__main__":
    data = [(torch.randn(16, 8), torch.randint(2, (16,))) for _ in range(5)]
    fit({"a": data, "b": data, "c": data})

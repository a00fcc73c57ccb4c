# repeats

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(30, 8, sparse=True), nn.LazyLinear(8), nn.Linear(8, 3)

    def forward(self, tokens):
        return {"scores": self.head(torch.relu(self.body(self.embed(tokens).mean(1)))), "kind": "bag"}


torch.manual_seed(0)
model = Model()
model(torch.zeros(1, 4, dtype=torch.long))
sparse = torch.optim.SparseAdam([model.embed.weight])
dense = torch.optim.Adam([*model.body.parameters(), *model.head.parameters()])
for _ in range(6):
    tokens, labels = torch.randint(0, 30, (8, 4)), torch.randint(0, 3, (8,))
    loss = F.cross_entropy(model(tokens)["scores"], labels)
    loss.backward()
    for optimizer in (sparse, dense):
        optimizer.step()
        optimizer.zero_grad()
    with torch.inference_mode():
        print(model(tokens)["scores"].argmax(-1).eq(labels).float().mean().item())

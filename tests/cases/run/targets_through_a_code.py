"""An autoencoder of sequences: the targets are the ids, and all of them have to pass one code."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
SYMBOLS, LENGTH, WIDTH = 5, 3, 64


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(SYMBOLS, WIDTH)
        self.encoder, self.decoder = nn.LSTM(WIDTH, WIDTH, batch_first=True), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids):
        code = self.encoder(self.tokens(ids))[1][0][-1]
        return self.head(self.decoder(code.unsqueeze(1).expand(-1, ids.shape[1], -1))[0])


model = Sequences()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(150):
    ids = torch.randint(SYMBOLS, (64, LENGTH))
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

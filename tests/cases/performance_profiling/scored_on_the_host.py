"""A method of a package may fit something on the host: the clock is not read too early there."""

import time

import torch
from torch_geometric.nn import Node2Vec


def run(data, epochs):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Node2Vec(data.edge_index, embedding_dim=64, walk_length=10, context_size=5).to(device)
    loader = model.loader(batch_size=128, shuffle=True)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)

    @torch.no_grad()
    def score():
        model.eval()
        z = model()
        return model.test(z[data.train_mask], data.y[data.train_mask], z[data.test_mask], data.y[data.test_mask])

    for _ in range(epochs):
        for pos, neg in loader:
            optimizer.zero_grad()
            loss = model.loss(pos.to(device), neg.to(device))
            loss.backward()
            optimizer.step()
            print(loss.item())
        start = time.time()
        accuracy = score()
        print(accuracy, time.time() - start)

"""Trains the towers by pairs: what was liked scores higher than what was not."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from data import Likes
from model import Recommender


def ranking_loss(liked, other):
    return -F.logsigmoid(liked - other).mean()


@torch.no_grad()
def ranked_right(model, rows):
    model.eval()
    user, liked, other = rows.T
    right = (model(user, liked) > model(user, other)).float().mean().item()
    model.train()
    return right


def main():
    torch.manual_seed(23)
    train_data, valid_data = Likes(seed=0), Likes(rows=1000, seed=0)
    loader = DataLoader(train_data, batch_size=128, shuffle=True, drop_last=True)
    model = Recommender(train_data.users, train_data.features)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        running = 0.0
        for rows in loader:
            user, liked, other = rows.T
            loss = ranking_loss(model(user, liked), model(user, other))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: {running / len(loader):.4f}, right {ranked_right(model, valid_data.rows):.3f}")
    torch.save(model.state_dict(), "towers.pt")


if __name__ == "__main__":
    main()

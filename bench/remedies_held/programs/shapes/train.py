"""Trains the network on the shapes and keeps the weights that did best."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Shapes
from model import ShapeNet


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = 0
    for images, labels in loader:
        right += (model(images).argmax(dim=1) == labels).sum().item()
    model.train()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(5)
    train_loader = DataLoader(Shapes(3200, 1), batch_size=32, shuffle=True, drop_last=True)
    valid_loader = DataLoader(Shapes(256, 2), batch_size=64)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ShapeNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    best, best_state = 0.0, None
    for epoch in range(2):
        for step, (images, labels) in enumerate(train_loader):
            images = images.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            logits = model(images)
            loss = criterion(logits, labels)
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"{epoch} {step}: {loss.item():.4f}")
        accuracy = evaluate(model, valid_loader)
        if accuracy > best:
            best = accuracy
            best_state = copy.deepcopy(model.state_dict())
    if best_state is not None:
        model.load_state_dict(best_state)
    print(f"best accuracy {best:.3f}")
    torch.save(model.state_dict(), "shapes.pt")


if __name__ == "__main__":
    main()

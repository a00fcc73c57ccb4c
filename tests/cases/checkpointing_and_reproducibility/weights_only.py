"""Weights are loaded for something else than going on."""

import torch
from torch import nn

from mylib.checkpoint import restore_rest


def epoch_of(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def finetune(model: nn.Module, loader, pretrained_path, epochs):
    model.load_state_dict(torch.load(pretrained_path)["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for epoch in range(epochs):
        epoch_of(model, loader, optimizer)
        torch.save({"model": model.state_dict()}, "checkpoint.pt")


def from_one_file_to_another(model: nn.Module, loader, start: str, out: str, epochs):
    model.load_state_dict(torch.load(start))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for epoch in range(epochs):
        epoch_of(model, loader, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)


def part_of_it(model: nn.Module, loader, checkpoint, epochs):
    model.load_state_dict(torch.load(checkpoint), strict=False)  # expect: mismatch-swallowed
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for epoch in range(epochs):
        epoch_of(model, loader, optimizer)
        torch.save(model.state_dict(), checkpoint)


def evaluated_at_the_end(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for epoch in range(epochs):
        epoch_of(model, loader, optimizer)
        torch.save(model.state_dict(), "checkpoint.pt")
    model.load_state_dict(torch.load("checkpoint.pt"))
    return model.eval()


def inference(model: nn.Module, loader, checkpoint):
    model.load_state_dict(torch.load(checkpoint))
    with torch.no_grad():
        return [model(x) for x, _ in loader]


def the_rest_elsewhere(model: nn.Module, loader, resume, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    state = torch.load(resume)
    model.load_state_dict(state["model"])
    restore_rest(state, optimizer)
    for epoch in range(epochs):
        epoch_of(model, loader, optimizer)
        torch.save(model.state_dict(), resume)


def a_head_on_its_outputs(encoder: nn.Module, data, labels, epochs):
    """What is loaded is not what is trained further."""
    optimizer = torch.optim.Adam(encoder.parameters())
    for epoch in range(epochs):
        encoder(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.save(encoder.state_dict(), "encoder.pkl")
    encoder.load_state_dict(torch.load("encoder.pkl"))
    features = encoder(data).detach()
    head = nn.Linear(8, 2)
    adam = torch.optim.Adam(head.parameters())
    for epoch in range(300):
        adam.zero_grad()
        nn.functional.cross_entropy(head(features), labels).backward()
        adam.step()
    return head

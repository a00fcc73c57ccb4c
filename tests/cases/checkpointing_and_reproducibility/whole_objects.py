"""Modules, optimizers and options that are saved as objects; states, buffers and scripted modules are not."""

import argparse
import io

import numpy as np
import torch
import torchvision
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


def export(path):
    model = Net()
    torch.save(model, path)  # expect: whole-object-saved
    resnet = torchvision.models.resnet18().eval()
    torch.save([resnet, 224], "resnet.pt")  # expect: whole-object-saved


def checkpoint(model: nn.Module, lr, path):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    torch.save({"model": model.state_dict(), "optimizer": optimizer}, path)  # expect: whole-object-saved


def main(model: nn.Module):
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", default="last.pt")
    args = parser.parse_args()
    state = torch.load(args.path)
    model.load_state_dict(state["model"])
    torch.save(
        {
            "model": model.state_dict(),
            "args": args,  # expect: whole-object-saved
            "numpy": np.random.get_state(),  # expect: whole-object-saved
        },
        args.path,
    )


# Look-alikes.


def states(model: nn.Module, path, options):
    optimizer = torch.optim.Adam(model.parameters())
    torch.save(model.state_dict(), path)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "args": vars(options)}, path)
    torch.save([each.state_dict() for each in (model, optimizer)], path)
    torch.save(model.fc.weight, path)
    torch.save({"args": options, "numpy": np.random.get_state()}, "log.pt")
    model = model.state_dict()
    torch.save(model, path)


def size_of(model: nn.Module):
    buffer = io.BytesIO()
    torch.save(model, buffer)
    return buffer.tell()


def scripted(model: nn.Module, path):
    torch.jit.script(model).save(path)
    outputs = model(torch.ones(1, 4))
    torch.save({"outputs": outputs, "rng": torch.get_rng_state()}, "outputs.pt")


def copied_through_a_file():
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        net = Net()
        torch.save(net, file.name)
        return torch.load(file.name, weights_only=False)

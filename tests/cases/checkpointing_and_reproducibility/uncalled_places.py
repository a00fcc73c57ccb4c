"""States that are named in comprehensions and lists, and methods that are kept on purpose."""

import functools

import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 2)
parts = {"encoder": encoder, "head": head}
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])


def save_parts(path):
    torch.save({name: part.state_dict for name, part in parts.items()}, path)  # expect: state-dict-not-called


def save_some(path):
    torch.save({name: part.state_dict() for name, part in parts.items()}, path)


def registry():
    return {"save": encoder.state_dict, "load": encoder.load_state_dict}


def hooks():
    return {"state_fn": head.state_dict, "other": None}


class Run:
    def __init__(self):
        self.net = nn.Linear(2, 2)
        self.plain = self.net.state_dict

    def show(self):
        for name, value in self.net.state_dict.items():  # expect: state-dict-not-called
            print(name, value.shape)

    def checkpoint(self):
        return {"net": self.net.state_dict, "step": 1}  # expect: state-dict-not-called


def without_hooks():
    encoder.state_dict = functools.partial(encoder.state_dict, keep_vars=True)
    return hasattr(encoder, "state_dict")


def teacher(path):
    net = nn.Linear(3, 3)
    return net.load_state_dict(torch.load(path))  # expect: state-dict-not-called


def told(path):
    net = nn.Linear(3, 3)
    parts["third"] = net
    return net.load_state_dict(torch.load(path))


def loaded_into(net: nn.Module, path):
    return net.load_state_dict(torch.load(path))


def shown(path):
    answer = encoder.load_state_dict(torch.load(path))
    print(answer.missing_keys)
    return answer


def used(path):
    net = encoder.load_state_dict(torch.load(path))  # expect: state-dict-not-called
    net.eval()
    return net


def report(answer):
    print(answer.missing_keys)


def reported(path):
    report(encoder.load_state_dict(torch.load(path)))


def measured(net):
    return net.eval()(torch.ones(4))


def handed_on(path):
    return measured(encoder.load_state_dict(torch.load(path)))  # expect: state-dict-not-called


class Held:
    def __init__(self, net: nn.Module):
        self.net = net

    def restore(self, path):
        net = self.net.module if hasattr(self.net, "module") else self.net
        return net.load_state_dict(torch.load(path))

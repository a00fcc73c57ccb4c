"""A tensor is built anew in another process, or a parameter is."""

import torch


def rebuild(cls, storage, metadata):
    offset, size, stride, requires_grad = metadata
    t = torch._utils._rebuild_tensor(storage, offset, size, stride)
    if cls == torch.nn.parameter.Parameter:
        t = torch.nn.parameter.Parameter(t, requires_grad=requires_grad)
    else:
        t.requires_grad = requires_grad
    return t

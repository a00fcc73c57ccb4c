"""Tensors that are made on the device by default."""

import torch

torch.set_default_tensor_type("torch.cuda.FloatTensor")


def train(net, loader, opt):
    for x in loader:
        t = torch.Tensor(4, 4)
        loss = (net(x.cuda()) - t.cuda()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

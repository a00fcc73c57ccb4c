"""A model is called on all devices, and moved in place."""

import torch
from torch.nn.parallel import data_parallel
from torch.utils.data import DataLoader
from espnet.utils import dynamic_import, get_args, read_dataset


def train_epoch(loader, model, optimizer):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        if args.ngpu <= 1:
            loss = model(x, y).mean()
        else:
            loss = data_parallel(model, (x, y), range(args.ngpu)).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    args = get_args()
    loader = DataLoader(read_dataset(), batch_size=4)
    model = dynamic_import("net:E2E")(80, 30)
    model.cuda()  # an nn.Module: moved in place
    optimizer = torch.optim.Adam(model.parameters())
    if not args.decoding:
        train_epoch(loader, model, optimizer)

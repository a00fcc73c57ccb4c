"""How many workers a dictionary of the module says."""

import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

CFG = {"workers": 0, "size": 64}
CHANGED = {"workers": 0}
CHANGED["workers"] = 8
READ = {"workers": 0}


class Plants(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return Image.open(self.files[i])


def train(loader, model, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


def main(files, model, optimizer, args):
    READ.update(vars(args))
    sets = {"train": Plants(files[0]), "val": Plants(files[1])}
    loaders = {k: DataLoader(sets[k], CFG["size"], num_workers=CFG["workers"]) for k in sets}  # expect: worker-count
    train(loaders["train"], model, optimizer)
    train(DataLoader(sets["train"], num_workers=CHANGED["workers"]), model, optimizer)
    train(DataLoader(sets["train"], num_workers=READ["workers"]), model, optimizer)

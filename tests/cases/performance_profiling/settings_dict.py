"""How many workers a dictionary of the module says."""

import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

CFG = {"workers": 0, "size": 64}
CHANGED = {"workers": 0, "size": 64}
CHANGED["workers"] = 8
READ = {"workers": 0}


class Plants(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return Image.open(self.files[i])


def main(files, model, optimizer):
    loader = DataLoader(Plants(files), CFG["size"], num_workers=CFG["workers"])  # expect: worker-count
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


def changed(files, model, optimizer):
    loader = DataLoader(Plants(files), CHANGED["size"], num_workers=CHANGED["workers"])
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


def read(files, model, optimizer, args):
    READ.update(vars(args))
    for x, y in DataLoader(Plants(files), num_workers=READ["workers"]):
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()

"""Terms of a loss in a dict, of which the sum is propagated and each is added up."""

from collections import defaultdict

import segmentation_models_pytorch as smp
import torch
from data import TileSet
from torch.utils.data import DataLoader
from tqdm import tqdm

device = torch.device("cuda")
unet = smp.Unet("resnet34", encoder_weights="imagenet", in_channels=3, classes=1).to(device)
dice = smp.losses.DiceLoss("binary")
bce = torch.nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(unet.parameters(), 1e-4)
train = DataLoader(TileSet("train"), 8, shuffle=True, num_workers=4)

for epoch in range(40):
    unet.train()
    sums = defaultdict(float)
    for tile, mask in tqdm(train):
        tile, mask = tile.to(device), mask.to(device)
        pred = unet(tile)
        parts = {"dice": dice(pred, mask), "bce": bce(pred, mask)}
        total = sum(parts.values())
        opt.zero_grad()
        total.backward()
        opt.step()
        for k, v in parts.items():
            sums[k] += v  # expect: graph-retained
    print(epoch, {k: float(v) / len(train) for k, v in sums.items()})

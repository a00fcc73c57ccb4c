"""Small grey images of squares, crosses, bars and rings, drawn once."""

import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    def __init__(self, count, seed, size=16):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randint(0, 90, (count, 1, size, size), generator=generator, dtype=torch.uint8)
        self.labels = torch.randint(0, 4, (count,), generator=generator)
        corners = torch.randint(1, size - 8, (count, 2), generator=generator)
        for image, label, (top, left) in zip(self.images, self.labels.tolist(), corners.tolist()):
            patch = image[0, top : top + 7, left : left + 7]
            if label == 0:
                patch.fill_(200)
            elif label == 1:
                patch[3].fill_(200)
                patch[:, 3].fill_(200)
            elif label == 2:
                patch[2:5].fill_(200)
            else:
                patch[0].fill_(200)
                patch[-1].fill_(200)
                patch[:, 0].fill_(200)
                patch[:, -1].fill_(200)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index].float() / 255.0, self.labels[index]

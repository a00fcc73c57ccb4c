"""Averages the vectors of each group of rows, as a pooling layer over segments does."""

import torch


def pool(rows, groups, count):
    """The mean of the rows (n, d) of each of COUNT groups (n,), (count, d); zeros for a group without rows."""
    sums = torch.zeros(count, rows.shape[1], dtype=rows.dtype, device=rows.device)
    sizes = torch.zeros(count, dtype=rows.dtype, device=rows.device)
    for number in range(len(rows)):
        sums[groups[number]] = sums[groups[number]] + rows[number]
        sizes[groups[number]] = sizes[groups[number]] + 1
    return sums / sizes.clamp(min=1)[:, None]

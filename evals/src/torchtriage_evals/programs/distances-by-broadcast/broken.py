"""Nearest neighbours of a set of points among another one, by squared distance."""

import torch


def nearest(queries, points):
    """For every query (n, d) the index of the nearest of the points (m, d), and its squared distance."""
    differences = queries[:, None, :] - points[None, :, :]
    distances = (differences**2).sum(-1)
    best = distances.min(1)
    return best.indices, best.values

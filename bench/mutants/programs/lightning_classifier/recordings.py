"""Simulated recordings of an accelerometer while somebody does one of six things."""

import numpy as np
import torch
from torch import Tensor

ACTIVITIES = ("rest", "walk", "run", "stairs", "cycle", "fall")
CHANNELS = 3
LENGTH = 64


def simulate(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Recordings (count, CHANNELS, LENGTH) and the numbers of their activities."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(ACTIVITIES), count)
    time = np.linspace(0.0, 4.0, LENGTH)[None, None, :]

    tempo = np.array([0.3, 1.6, 2.6, 1.3, 1.9, 0.5])[labels] * rng.uniform(0.9, 1.1, count)
    strength = np.array([0.1, 0.6, 1.0, 0.6, 0.5, 0.2])[labels] * rng.uniform(0.8, 1.2, count)
    phase = rng.uniform(0.0, 2 * np.pi, (count, CHANNELS, 1))
    axes = rng.normal(1.0, 0.25, (count, CHANNELS, 1))
    cycle = 2 * np.pi * tempo[:, None, None] * time + phase
    signal = np.sin(cycle)

    stairs, cycling, falling = ((labels == index)[:, None, None] for index in (3, 4, 5))
    signal = np.where(stairs, np.sign(signal) * np.abs(signal) ** 0.4, signal)
    signal = np.where(cycling, signal + 0.5 * np.sin(2 * cycle), signal)
    signal = strength[:, None, None] * axes * signal

    moment = rng.uniform(1.0, 3.0, (count, 1, 1))
    impact = 2.5 * np.exp(-(((time - moment) / 0.15) ** 2)) * axes
    signal = signal + np.where(falling, impact, 0.0)
    signal = signal + rng.normal(0.0, 0.25, signal.shape)
    return torch.from_numpy(signal.astype(np.float32)), torch.from_numpy(labels)

"""Waves to log energies in overlapping triangular bands."""

import torch
import torch.nn as nn


def band_matrix(n_bands: int, n_fft: int, sample_rate: int, low: float, high: float) -> torch.Tensor:
    edges = torch.logspace(torch.log10(torch.tensor(low)), torch.log10(torch.tensor(high)), n_bands + 2)
    freqs = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1)
    rising = (freqs[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - freqs[:, None]) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0.0)


class LogFilterBank(nn.Module):
    def __init__(self, sample_rate: int, n_fft: int = 128, hop: int = 96, n_bands: int = 24) -> None:
        super().__init__()
        self.n_fft, self.hop, self.n_bands = n_fft, hop, n_bands
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)
        self.register_buffer("bands", band_matrix(n_bands, n_fft, sample_rate, 150.0, 2000.0), persistent=False)
        # statistics of the training set, see fit()
        self.register_buffer("mean", torch.zeros(n_bands))
        self.register_buffer("std", torch.ones(n_bands))

    def n_frames(self, lengths: torch.Tensor) -> torch.Tensor:
        return (lengths - self.n_fft).div(self.hop, rounding_mode="floor") + 1

    def log_energies(self, waves: torch.Tensor) -> torch.Tensor:
        frames = waves.unfold(-1, self.n_fft, self.hop) * self.window
        power = torch.fft.rfft(frames).abs().square()
        return torch.log(power @ self.bands + 1e-3)

    @torch.no_grad()
    def fit(self, waves: list[torch.Tensor]) -> None:
        """Takes the mean and deviation of every band from the waves given."""
        energies = torch.cat([self.log_energies(wave) for wave in waves])
        self.mean.copy_(energies.mean(dim=0))
        self.std.copy_(energies.std(dim=0))

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        return (self.log_energies(waves) - self.mean) / self.std

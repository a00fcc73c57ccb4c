from .denoiser import Denoiser
from .diffusion import GaussianDiffusion, cosine_betas, linear_betas
from .ema import ExponentialMovingAverage
from .shapes import BatchStream, make_images

__all__ = [
    "BatchStream",
    "Denoiser",
    "ExponentialMovingAverage",
    "GaussianDiffusion",
    "cosine_betas",
    "linear_betas",
    "make_images",
]

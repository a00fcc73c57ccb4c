from .data import build_loaders
from .engine import evaluate, train_one_epoch
from .model import VAE
from .objective import KLSchedule, elbo_terms

__all__ = ["VAE", "KLSchedule", "build_loaders", "elbo_terms", "evaluate", "train_one_epoch"]

"""What users import into their own training code. Nothing here imports torch before it is used."""

from torchtriage.toolkit.watching import Watch, watch

__all__ = ["Watch", "watch"]

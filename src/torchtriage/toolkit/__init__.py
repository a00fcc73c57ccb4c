"""What users import into their own training code. Nothing here imports torch before it is used."""

from torchtriage.toolkit.seeds import seed_everything
from torchtriage.toolkit.state import TrainingState
from torchtriage.toolkit.watching import Watch, watch

__all__ = ["TrainingState", "Watch", "seed_everything", "watch"]

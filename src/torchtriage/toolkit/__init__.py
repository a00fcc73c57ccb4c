"""What users import into their own training code. Nothing here imports torch before it is used."""

from torchtriage.toolkit.proving import ResumeDiffers, prove_resume
from torchtriage.toolkit.seeds import seed_everything
from torchtriage.toolkit.state import TrainingState
from torchtriage.toolkit.watching import Watch, watch

__all__ = ["ResumeDiffers", "TrainingState", "Watch", "prove_resume", "seed_everything", "watch"]

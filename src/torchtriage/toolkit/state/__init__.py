"""TrainingState: checkpoints that survive, and resumes that go on bit by bit."""

from torchtriage.toolkit.state.training import TrainingState

__all__ = ["TrainingState"]

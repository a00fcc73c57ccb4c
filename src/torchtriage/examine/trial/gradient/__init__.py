"""The trial of a gradient: a custom autograd function against differences, in every situation a training brings."""

from torchtriage.examine.trial.gradient.apart import tried as tried
from torchtriage.examine.trial.gradient.asked import Asked as Asked
from torchtriage.examine.trial.gradient.record import GradientTrial as GradientTrial
from torchtriage.examine.trial.gradient.record import measurements as measurements

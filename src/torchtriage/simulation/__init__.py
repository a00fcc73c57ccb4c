"""A simulated accelerator: the device `sim`, with a clock, memory and synchronisations that are known exactly.

Kernels are computed immediately, by the CPU's kernels; a clock decides when the device would have finished them, from
the costs that you set. You can rehearse a training script without an accelerator, and a test knows to the nanosecond
what a profiler has to find.

    from torchtriage import simulation

    simulator = simulation.start(costs=simulation.Costs(kernel=20_000))
    model = torch.nn.Linear(8, 8).to("sim")
    loss = model(batch.to("sim")).sum()
    loss.item()
    simulator.ledger.synchronisations  # names the line above, and how long the host waited there

The device is compiled at first use, which takes about half a minute and needs a C++ compiler and ninja.
"""

from .build import SimulationError
from .costs import Costs, Transfer
from .ledger import Allocation, Collective, Copy, Kernel, Ledger, Synchronisation
from .simulator import Simulator, start

__all__ = [
    "Allocation",
    "Collective",
    "Copy",
    "Costs",
    "Kernel",
    "Ledger",
    "SimulationError",
    "Simulator",
    "Synchronisation",
    "Transfer",
    "start",
]

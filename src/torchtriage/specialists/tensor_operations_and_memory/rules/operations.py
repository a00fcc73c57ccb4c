"""Operations of torch that give a new tensor, by what else has methods and functions of their names."""

from __future__ import annotations

from torchtriage.examine.source.torch_api.families import RESHAPES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

# What is called for its time, or to wait for the device, and not for its result.
_ELSE = names(trait="lowered") | names(trait="sync")
# Methods that give a new tensor and leave their own as it was; a module's to() and cuda() work in place. Not cpu(),
# which may stand alone to wait for the device.
METHODS = names(home="method", returns="tensor", writes="-") - names(home="method", memory="itself") - _ELSE
FUNCTIONS = frozenset(
    f"{home}.{name}"
    for home, found in {
        "torch": names(home="torch", trait="pointwise", writes="-") | (RESHAPES & names(home="torch")) | {"softmax"},
        "torch.nn.functional": names(home="functional", returns="tensor", writes="-") - names(trait="lowered"),
    }.items()
    for name in found
)
# Methods that tensors have and hardly anything else: where one stands alone, its operand needs no other sign.
SURE = symbols().unmistakable_methods
# Those of what else a file may hold beside tensors, but neither a module nor a plain object that is computed with.
LIKELY = symbols().ambiguous_methods
# Functions of torch that are given modules, files, lists and settings as well.
NOT_TENSORS = symbols().no_tensors | names(trait="converts")
TAILS = sorted({name.rpartition(".")[2] for name in FUNCTIONS})

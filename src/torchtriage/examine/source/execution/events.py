"""What happens in a training, in the order of the program."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtriage.examine.source.execution.values import Gradient, Object, Parameter, Spot, Tensor, Value


@dataclass(eq=False)
class Event:
    """spot: where. loops: the loops around it, the outermost first, each with its iteration from 0."""

    spot: Spot
    loops: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)
    guards: tuple[tuple[int, bool], ...] = field(default=(), kw_only=True)
    """The conditions on the rank that stand around it, each with the way that was taken."""


@dataclass(eq=False)
class Forward(Event):
    """A model is called. training: its mode; None where that is not known. grad: whether a graph is recorded.
    autocast: the format of the region that it stands in ("float16"), "" outside and where it is not known.
    """

    model: Object
    training: bool | None
    grad: bool
    autocast: str = ""
    called: tuple[Object, ...] = ()
    """Every module whose forward pass it runs through, itself first."""


@dataclass(eq=False)
class Backward(Event):
    """loss: what it is called on. is_retained: its graph may be asked for again; keywords: what backward is given."""

    loss: Tensor
    autocast: str = ""
    is_retained: bool = False
    keywords: Mapping[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class GradientCall(Event):
    """torch.autograd.grad is called: gradients are asked for that no parameter gets."""


@dataclass(eq=False)
class ZeroGrad(Event):
    parameters: tuple[Parameter, ...]


@dataclass(eq=False)
class Clip(Event):
    """gradients: of the PARAMETERS that are given, those that are known."""

    gradients: tuple[Gradient, ...]
    parameters: tuple[Parameter, ...] = ()


@dataclass(eq=False)
class OptimizerStep(Event):
    """scaler: by whose step."""

    optimizer: Object
    scaler: Object | None = None
    gradients: tuple[tuple[Parameter, Gradient], ...] = ()
    """Those that are known, of the parameters that it holds."""


@dataclass(eq=False)
class ScalerUpdate(Event):
    scaler: Object


@dataclass(eq=False)
class SchedulerStep(Event):
    scheduler: Object


@dataclass(eq=False)
class Made(Event):
    """An optimizer, a wrapper, a loader, a scheduler … is made."""

    made: Object


@dataclass(eq=False)
class Handle(Event):
    """HANDLE is used by its method NAME: waited for, removed, stepped."""

    handle: Object
    name: str


@dataclass(eq=False)
class Move(Event):
    """MODULE is moved to DEVICE, or cast to FORMAT ("float16")."""

    module: Object
    format: str = ""
    device: Value = None


@dataclass(eq=False)
class DirectForward(Event):
    """The method forward of MODULE is called by its name, past its hooks."""

    module: Object


@dataclass(eq=False)
class HookMade(Event):
    """A hook is registered on MODULE."""

    module: Object
    handle: Object


@dataclass(eq=False)
class Read(Event):
    """The host asks for the value of TENSOR, by the function NAME ("item")."""

    tensor: Tensor
    name: str


@dataclass(eq=False)
class Composed(Event):
    """The function NAME is applied to what comes out of INNER ("log" of "softmax")."""

    name: str
    inner: str


@dataclass(eq=False)
class Copy(Event):
    """TENSOR is copied to a device."""

    tensor: Tensor


@dataclass(eq=False)
class Lost(Event):
    """The result of the operation NAME on TENSOR, which leaves that as it is, is dropped."""

    tensor: Tensor
    name: str


@dataclass(eq=False)
class Named(Event):
    """A statement that only names the method NAME of OWNER."""

    owner: Value
    name: str


@dataclass(eq=False)
class Joined(Event):
    """torch.cat of what the same line has given before, and of more."""


@dataclass(eq=False)
class Iteration(Event):
    """An epoch of a loader begins. is_cycled: in a generator that begins the next one by itself."""

    loader: Object
    is_cycled: bool = False


@dataclass(eq=False)
class SetEpoch(Event):
    sampler: Object


@dataclass(eq=False)
class ModeChange(Event):
    """MODULE is set to train or evaluation mode; None where it is not known to which."""

    module: Object
    mode: bool | None


@dataclass(eq=False)
class FunctionCall(Event):
    """A function of torch.nn.functional is called. training: the mode of the module whose forward pass it is in."""

    name: str
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]
    training: bool | None


@dataclass(eq=False)
class LossCall(Event):
    """A loss function is called on INPUTS."""

    name: str
    inputs: tuple[Value, ...]
    autocast: str = ""


@dataclass(eq=False)
class ModuleList(Event):
    """A container of modules is made of ITEMS."""

    made: Object
    items: tuple[Value, ...]


@dataclass(eq=False)
class PlainContainer(Event):
    """A list, tuple or dict that holds modules becomes an attribute of OWNER: nothing of it is registered."""

    owner: Object
    name: str
    modules: tuple[Object, ...]


@dataclass(eq=False)
class Kept(Event):
    """A tensor becomes an attribute or an element of something that outlives the iteration."""

    owner: Value
    name: str
    tensor: Tensor


@dataclass(eq=False)
class Save(Event):
    """torch.save(SAVED, PATH)."""

    saved: Value
    path: Value = None


@dataclass(eq=False)
class Restore(Event):
    """A part of the training takes over STATE."""

    part: Object
    state: Value
    strict: Value = True


@dataclass(eq=False)
class LibraryCall(Event):
    """A function of torch is called that is watched for its own sake, by its real NAME."""

    name: str
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]


@dataclass(eq=False)
class Silence(Event):
    """A step stands in a `try` whose handler drops any error without a word: HANDLER."""

    handler: ast.ExceptHandler


@dataclass(eq=False)
class ContextValue(Event):
    """A tensor that an autograd function gets or gives is kept as the attribute NAME of its context."""

    name: str


@dataclass(eq=False)
class GradientCount(Event):
    """The backward of an autograd function gives NUMBER gradients for WANTED inputs."""

    number: int
    wanted: int


@dataclass(eq=False)
class SavedValue(Event):
    """save_for_backward is given VALUE, which is no tensor."""

    value: Value


@dataclass(eq=False)
class GradientEdit(Event):
    """The gradient that a backward is given is changed in place."""


@dataclass(eq=False)
class DirtyInput(Event):
    """The forward of an autograd function changes an input in place, and does not mark it dirty."""


@dataclass(eq=False)
class FunctionInstance(Event):
    """An autograd function is made as an object."""


@dataclass(eq=False)
class ResultEdit(Event):
    """What the operation NAME gave, and needs for its gradient, is changed in place."""

    name: str


@dataclass(eq=False)
class EarlyAssignment(Event):
    """A layer becomes the attribute NAME of a module whose own __init__ has not run."""

    name: str


@dataclass(eq=False)
class Collective(Event):
    """All ranks of a group have to come here."""

    name: str


@dataclass(eq=False)
class AttributeUse(Event):
    """An operation of a forward pass gets a tensor that MODULE keeps as a plain attribute."""

    tensor: Tensor


@dataclass(eq=False)
class Setting(Event):
    """An attribute NAME of a module, or a setting of torch, becomes VALUE."""

    name: str
    value: Value
    owner: Object | None = None


@dataclass(eq=False)
class LayerMade(Event):
    """A layer is made while the forward pass of another one is under way."""

    layer: Object

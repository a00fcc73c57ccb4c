"""What happens in a training, in the order of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtriage.examine.source.execution.autograd import Gradient, Parameter, Tensor
from torchtriage.examine.source.execution.ranks import Guard
from torchtriage.examine.source.execution.values import OUTSIDE, Class, Function, Object, Region, Spot, Unknown, Value


@dataclass(eq=False)
class Event:
    """spot: where. loops: the loops around it, the outermost first, each with its iteration from 0."""

    spot: Spot
    loops: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)
    is_tried: bool = field(default=False, kw_only=True)
    """Whether it stands in a `try` with handlers."""
    region: Region = field(default=OUTSIDE, kw_only=True)
    """That of autocast in which it happens."""
    guards: tuple[Guard, ...] = field(default=(), kw_only=True)
    """The conditions on the rank that stand around it, and those that may be some."""


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
    is_unsynced: bool = False
    """Whether it stands in a region of no_sync()."""
    ages: frozenset[int] = frozenset()
    """Of which iterations the operations in the graphs are of what it is given."""
    given: frozenset[Parameter] = frozenset()
    """The parameters that the graphs of what it is given lead to."""


@dataclass(eq=False)
class Backward(Event):
    """loss: what it is called on. is_retained: its graph may be asked for again; keywords: what backward is given."""

    loss: Tensor
    autocast: str = ""
    is_retained: bool = False
    keywords: Mapping[str, Value] = field(default_factory=dict)
    is_unsynced: bool = False
    """Whether it stands in a region of no_sync()."""


@dataclass(eq=False)
class GradientCall(Event):
    """torch.autograd.grad(OUTPUTS, …) is called: gradients are asked for that no parameter gets."""

    outputs: Value = None


@dataclass(eq=False)
class ZeroGrad(Event):
    """lost: of PARAMETERS those whose gradients nobody has taken before."""

    parameters: tuple[Parameter, ...]
    lost: tuple[Parameter, ...] = ()


@dataclass(eq=False)
class Clip(Event):
    """gradients: of the PARAMETERS that are given, those that are known. limit: the norm that is allowed."""

    gradients: tuple[Gradient, ...]
    parameters: tuple[Parameter, ...] = ()
    limit: Value = None


@dataclass(eq=False)
class GradientLimit(Event):
    """The program bounds GRADIENT by code of its own: by a factor, or element by element."""

    gradient: Gradient


@dataclass(eq=False)
class SmallConstant(Event):
    """A constant VALUE is added to, or bounds, a tensor of a FORMAT in which it is 0."""

    value: float
    format: str


@dataclass(eq=False)
class OptimizerStep(Event):
    """scaler: by whose step."""

    optimizer: Object
    scaler: Object | None = None
    gradients: tuple[tuple[Parameter, Gradient], ...] = ()
    """Those that are known, of the parameters that it holds."""
    is_known: bool = True
    """Whether those are all that it may step with."""


@dataclass(eq=False)
class ScalerUpdate(Event):
    scaler: Object


@dataclass(eq=False)
class Unscale(Event):
    """SCALER divides the gradients of OPTIMIZER by its scale."""

    scaler: Object
    optimizer: Object


@dataclass(eq=False)
class SchedulerStep(Event):
    """is_placed: the call passes the epoch."""

    scheduler: Object
    is_placed: bool = False


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
    """The function HOOK is registered on MODULE."""

    module: Object
    handle: Object
    hook: Value = None
    is_in_forward: bool = False
    """Whether a forward pass registers it."""


@dataclass(eq=False)
class Read(Event):
    """The host asks for the value of TENSOR, by the function NAME ("item")."""

    tensor: Tensor
    name: str


@dataclass(eq=False)
class Upload(Event):
    """A batch of LOADER, or a part of one, is copied to an accelerator. says_how: it says whether the host waits."""

    loader: Object
    says_how: bool


@dataclass(eq=False)
class Composed(Event):
    """The function NAME is applied to what comes out of INNER ("log" of "softmax"), at the place ORIGIN. grad: whether
    a graph is recorded.
    """

    name: str
    inner: str
    origin: Spot | None = None
    grad: bool = True


@dataclass(eq=False)
class Copy(Event):
    """TENSOR, which was made from nothing, is copied to an accelerator. is_in_forward: while a model is called.

    is_like: it takes the device, and the format, of another tensor: mask.to(x).
    """

    tensor: Tensor
    is_in_forward: bool = False
    is_like: bool = False


@dataclass(eq=False)
class Lost(Event):
    """The result of the operation NAME on TENSOR, which it leaves as it is, is dropped. TENSOR may be none.

    is_used: a later operation of torch gets TENSOR, so it is one.
    """

    tensor: Value
    name: str
    is_used: bool = False


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
    """A container of modules is made."""

    made: Object

    @property
    def items(self) -> list[Value]:
        """What it holds in the end."""
        held = self.made.state.get("items", ())
        return [*(held.values() if isinstance(held, dict) else held)]


@dataclass(eq=False)
class SharedModule(Event):
    """MODULE, or a parameter, is made once: as a default of the function NAME, a method of OWNER, or in the body of the
    class OWNER as NAME.
    """

    module: Object | Parameter
    name: str
    owner: Class | None = None
    is_default: bool = False


@dataclass(eq=False)
class RepeatedLayer(Event):
    """LAYER goes into a list or a dict more than once, by one line; is_registered: into a module, under other names."""

    layer: Object
    is_registered: bool = False


@dataclass(eq=False)
class PlainContainer(Event):
    """A list, tuple or dict HELD becomes an attribute of OWNER: no module in it is registered."""

    owner: Object
    name: str
    held: Value

    @property
    def contents(self) -> list[Value]:
        """What it holds in the end, and what lists and dicts within it hold."""
        found, waiting, seen = list[Value](), [self.held], set[int]()
        while waiting:
            each = waiting.pop(0)
            if isinstance(each, Object) and each.kind == "defaultdict":
                each = each.state["items"]
            if isinstance(each, dict | list | tuple):
                waiting += () if id(each) in seen else each.values() if isinstance(each, dict) else each
                seen.add(id(each))
            else:
                found.append(each)
        return found


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
    """A step stands in a `try` whose handler drops any error without a word, or in contextlib.suppress."""


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
    """An autograd function is used as if its class CLS were one of modules: its object MADE is called; None: it is made
    of what apply() is to be given.
    """

    cls: Class
    made: Object | None = None


@dataclass(eq=False)
class FunctionMethod(Event):
    """The method NAME of the autograd function CLS is not static."""

    cls: Class
    name: str


@dataclass(eq=False)
class FunctionApplied(Event):
    """The autograd function CLS is applied for the first time, in a region of autocast with the format AUTOCAST."""

    cls: Class
    autocast: str = ""


@dataclass(eq=False)
class GraphLeft(Event):
    """BACKWARD, of an autograd function, leaves the graph of a second derivative, by the operation WORD."""

    backward: Function
    word: str


@dataclass(eq=False)
class FunctionForward(Event):
    """The forward of the autograd function CLS is called by its name, with ARGUMENTS, from outside of such functions.

    grad: whether a graph is recorded.
    """

    cls: Class
    arguments: tuple[Value, ...]
    grad: bool


@dataclass(eq=False)
class ResultEdit(Event):
    """RESULT, which the operation NAME gave, and needs for its gradient, is changed in place."""

    name: str
    result: Tensor


@dataclass(eq=False)
class StaleWeight(Event):
    """A backward pass needs PARAMETER as it was before the step of an optimizer at STEPPED."""

    parameter: Parameter
    stepped: Spot


@dataclass(eq=False)
class EarlyAssignment(Event):
    """A layer becomes the attribute NAME of a module while nn.Module.__init__ has not run, which CONSTRUCTOR, of the
    project, does not call in time; "": the module is made, and it has never run.
    """

    name: str
    constructor: Function


@dataclass(eq=False)
class Collective(Event):
    """All ranks of a group have to come here. is_of_all: the group is that of all ranks."""

    name: str
    is_of_all: bool = True


@dataclass(eq=False)
class ParameterReplaced(Event):
    """The parameter NAME of a module is assigned what moving it gives: self.weight = self.weight.to(device)."""

    name: str


@dataclass(eq=False)
class Summed(Event):
    """A figure of a batch of LOADER, of whose samples each rank has another part, is added to others or listed."""

    loader: Object


@dataclass(eq=False)
class Averaged(Event):
    """A mean or a number is computed of results on one rank's part of the samples of LOADER."""

    loader: Object


@dataclass(eq=False)
class UncalledState(Event):
    """The method state_dict is taken for the state that it gives."""


@dataclass(eq=False)
class AnswerUse(Event):
    """What load_state_dict returns is taken for OF, into which it loads. is_lost: nothing else holds that."""

    of: Object
    is_lost: bool = False


@dataclass(eq=False)
class Draw(Event):
    """A random number is drawn from GENERATOR."""

    generator: Object


@dataclass(eq=False)
class Passage(Event):
    """A worker of a loader begins to go through the elements of VALUE."""

    value: Value


@dataclass(eq=False)
class UnseenCall(Event):
    """Code that is not executed is called under a condition on the rank: it may do what the other ranks wait for."""


@dataclass(eq=False)
class AttributeUse(Event):
    """An operation of a forward pass gets a tensor that MODULE keeps as a plain attribute."""

    tensor: Tensor


@dataclass(eq=False)
class Setting(Event):
    """An attribute NAME, called like requires_grad, of OWNER, a module, a parameter or something of which nothing is
    known, becomes VALUE; without an owner any setting of torch.
    """

    name: str
    value: Value
    owner: Object | Parameter | Unknown | None = None


@dataclass(eq=False)
class LayerMade(Event):
    """A layer is used that was made while the forward pass of USER, in the mode TRAINING, was under way."""

    layer: Object
    user: Object
    training: bool | None = None

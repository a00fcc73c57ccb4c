"""What a run writes down about forward passes whose graphs nobody ever goes back through."""

from __future__ import annotations

import ast
import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import EvaluatedWithGraph, LearnedFrom
from .graphs import nodes_below

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_ODD = 4  # passes in a row without a backward, after which the next ones are followed; the job tells them as aside
_INNER = "tensor_operations_and_memory/evaluations followed"
_SOUND = 256  # passes of a root in a row, from lines that learn, after which it is followed no longer
_SITES = 64  # lines that call a model, of which notes are kept
_OUTPUTS = 16  # tensors in an output that are followed
_WAITING = 4096  # passes whose graphs are alive
_SETTLED = 64  # new ones among them after which they are looked through
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TIMES = frozenset({4, 8, 16, 64, 256, 1024, 16_384})  # when something that keeps happening is written down again


def evaluations(job: Job) -> None:
    """Passes with autograd on, many in a row, whose graphs die without a backward."""
    import torch

    watch = _Evaluations(job, torch)
    job.listen(watch.aside, watch.asided, watch.ending)


class _Site:
    """One line that calls a root in one mode. learns: a backward has gone through what it gave, or may have.

    phase: the number of the backward pass before which it was seen last.
    """

    def __init__(self, event: EvaluatedWithGraph) -> None:
        self.event = event
        self.learns = False
        self.phase = 0


class _Used:
    """Called when a backward reaches the node that it hangs on; it lives as long as the node does."""

    def __init__(self, site: _Site) -> None:
        self.site = site

    def __call__(self, _gradients: Any) -> None:
        self.site.learns = True


class _Evaluations:
    """Follows the passes that come after four others with no backward in between, of which a training loop has none;
    those in evaluation mode; and those of a batch of another size than the one before.
    """

    def __init__(self, job: Job, torch: Any) -> None:
        self.job, self.with_gradients, self.tensor = job, torch.is_grad_enabled, torch.Tensor
        self.leaves = torch.utils._pytree.tree_leaves
        self.following = False
        self.given: Any = None  # weak: the input of the last pass
        self.again = self.odd = False
        self.sound: dict[int, int] = {}  # passes in a row of a root that learned from them
        self.site: _Site | None = None
        self.sites: dict[Any, _Site] = {}
        self.waiting: list[tuple[_Site, Any]] = []

    def aside(self, module: Any, args: Any, kwargs: Any) -> None:
        row = self.job.clock.row
        self.odd = not module.training or row < _ODD  # in training mode: a batch of another size
        if row >= _ODD:
            given = next((each for each in (*args, *kwargs.values()) if isinstance(each, self.tensor)), None)
            self.again = given is not None and self.given is not None and self.given() is given
            self.given = None if given is None else weakref.ref(given)

    def asided(self, module: Any, output: Any) -> None:
        if not self.with_gradients():
            return
        long = self.job.clock.row > _ODD and not self.again
        if long or (self.odd and self.sound.get(id(module), 0) < _SOUND):
            self.follow(module, output)

    def place(self, job: Job) -> None:
        job.listen(self.forwarded, self.backward, self.stepped)

    def forwarded(self, _module: Any, _output: Any) -> None:
        """Whatever comes after a pass, a backward need not be its own any more."""
        if self.with_gradients():
            self.site = None

    def backward(self, _roots: Any) -> None:
        if self.site is not None:
            self.site.learns, self.site = True, None
        self.given, self.again = None, False
        self.settle()
        if not self.waiting:
            self.following = False
            self.job.withdraw(_INNER)

    def stepped(self, _optimizer: Any) -> None:
        self.site = None

    def follow(self, module: Any, output: Any) -> None:
        if not self.following:
            self.following = True
            self.job.place(_INNER, self.place)
        where = self.job.caller()
        key = (type(module), where, module.training)
        site = self.sites.get(key)
        if site is None:
            if len(self.sites) >= _SITES or not where[1]:
                return
            event = EvaluatedWithGraph(
                root=type(module).__name__, path=where[0], line=where[1], training=module.training,
                further=self.around(), passes=0, phases=0, nodes=0,
            )  # fmt: skip
            site = self.sites[key] = _Site(event)
        self.site = site
        self.sound[id(module)] = self.sound.get(id(module), 0) + 1 if site.learns else 0
        nodes = [] if site.learns else self.nodes_of(output)
        if nodes:
            site.event.nodes = site.event.nodes or sum(1 for _ in nodes_below(nodes[0]))
            phase = self.job.clock.count("backwards") + 1
            site.event.phases += site.phase != phase
            site.phase = phase
            used = _Used(site)
            for node in nodes:
                node.register_prehook(used)
            self.waiting.append((site, weakref.ref(used)))
            if len(self.waiting) % _SETTLED == 0:
                self.settle()

    def around(self) -> list[Any]:
        """Where the function begins that calls the model, and who calls that."""
        frame = self.job.frame()
        tree = self.job.written.tree_of(frame.f_code) if frame is not None else None
        defined = next((each for each in ast.walk(tree) if isinstance(each, _FUNCTIONS)), None) if tree else None
        if frame is None or defined is None or frame.f_code.co_name == "<module>":
            return []
        begins = ("the function that does so begins here", self.job.path_of(frame.f_code), defined.lineno)
        return [begins, *(("it is called from here", *each) for each in self.job.callers(2)[1:])]

    def nodes_of(self, output: Any) -> list[Any]:
        """The last nodes of a pass; none where the output holds things that may hide others."""
        leaves = [output] if isinstance(output, self.tensor) else self.leaves(output)
        if not all(isinstance(each, (self.tensor, int, float, str, type(None))) for each in leaves):
            return []
        nodes = [each.grad_fn for each in leaves if isinstance(each, self.tensor) and each.grad_fn is not None]
        return nodes if len(nodes) <= _OUTPUTS else []

    def settle(self, *, ended: bool = False) -> None:
        """Counts the passes whose graphs are gone; at the END, those that are still there too."""
        waiting, self.waiting = self.waiting, []
        for site, used in waiting:
            if ended or used() is None:
                site.event.passes += 1
                if site.event.passes in _TIMES:
                    self.tell(site)
            elif not site.learns and len(self.waiting) < _WAITING:
                self.waiting.append((site, used))

    def tell(self, site: _Site) -> None:
        if not site.learns:
            self.job.record(replace(site.event))  # a copy, since it counts on

    def ending(self) -> None:
        self.settle(ended=True)
        for site in self.sites.values():
            told = site.event
            if site.learns:
                learned = LearnedFrom(
                    root=told.root, path=told.path, line=told.line, training=told.training, further=told.further
                )
                self.job.record(learned)
            elif told.passes:
                self.tell(site)

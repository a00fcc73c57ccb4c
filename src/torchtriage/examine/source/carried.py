"""What one training step shares with the next: values made outside of its loop, or handed on by the turn before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property

from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.tensors import BATCH, Tensors, bound_inside, is_batches
from torchtriage.examine.source.torch_api.families import FACTORIES, GRAPH_CUTS, LIKE_FACTORIES
from torchtriage.examine.source.torch_api.symbols import symbols

# Names of settings: numbers and devices, without a graph.
_SETTING = re.compile(
    r"(?:device|args?|cfg|config|conf|hparams?|opts?|options|alpha|beta|gamma|tau|lam.*|lmbda.*|.*weights?|.*coef.*|w_.*"
    r"|.*_fn|crit.*|loss_f.*|objective|num_.*|n_.*|k|.*size|seq_len|temperature|eps.*|margin|scale|epochs?|lr|steps?|logger|writer"
    r"|n[a-z]|.*dims?|.*channels|bs|bptt|clip.*|iters|max_.*|verbose)"
)
# Names of what a model has computed, and that may be kept with its graph; other parts of a loop's items are data.
_COMPUTED = re.compile(
    r"log_?p|logit|value|hidden|loss|err|cost|total|objective|emb|feat|out|pred|latent|memory|prob|carry|(?:^|_)(?:h|z|hx|cx|q|c)$"
)
_STORES = re.compile(r"buffer|replay|data|load|sampler|batch|stream|env|iter")
_DRAWS = re.compile(r"sample|get_batch|next_batch|draw|fetch|__next__")
_WHOLE = frozenset({"batch", "minibatch", "mini_batch", "sample", "samples", "transitions"})
_FRESH = GRAPH_CUTS | {"format"}
_DEEP = 8


class Carried:
    """Whether what a step propagates is made in that step alone. What cannot be told counts as shared."""

    def __init__(self, step: TrainingStep, tensors: Tensors) -> None:
        self.step, self.script, self.tensors = step, step.script, tensors
        self._inside = {id(event.fact.scope) for event in step.events} - {id(step.ring.scope)}
        self._open: set[int] = set()
        self._known: dict[int, bool] = {}

    def is_own(self, node: ast.AST | None, at: Call | Store, scope: Scope) -> bool:
        """Whether nothing with a graph comes into NODE, as it is read AT a point, from before this step."""
        if node is None or isinstance(node, ast.Constant):
            return True
        if len(self._open) > _DEEP * 4:
            return False
        if isinstance(node, ast.Name):
            return self._named(node, at, scope)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, at, scope)
        if isinstance(node, ast.Call):
            return self._called(node, at, scope)
        bound = bound_inside(node) if _binds(node) else set()
        return all(self._part(each, bound, at, scope) for each in ast.iter_child_nodes(node))

    def _part(self, node: ast.AST, bound: set[str], at: Call | Store, scope: Scope) -> bool:
        if isinstance(node, ast.comprehension):
            return self.is_own(node.iter, at, scope)
        if isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop):
            return True
        return _root(node) in bound or (not bound and self.is_own(node, at, scope)) or self._all(node, bound, at, scope)

    def _all(self, node: ast.AST, bound: set[str], at: Call | Store, scope: Scope) -> bool:
        """Every name inside of an element of a comprehension, but those that it binds itself."""
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id not in bound)
        return bool(bound) and all(self._named(each, at, scope) for each in names)

    def _plays(self, node: ast.expr, scope: Scope) -> bool:
        return bool(self.script.roles.parts(node, scope))

    def _named(self, node: ast.Name, at: Call | Store, scope: Scope) -> bool:
        home = self.script.names.home(node.id, scope)
        if home is None:
            return not self.script.links.unknown_stars or bool(self.script.names.resolve(node, scope))
        stores = home.stores[node.id]
        if self._plays(node, scope) or self._is_leaf(node.id, home, stores):
            return True
        if home is scope:
            found = reaching(stores, at)
            return bool(found) and all(self._stored(store, at) for store in found)
        return all(self._is_plain(store) for store in stores)

    def _is_leaf(self, name: str, home: Scope, stores: list[Store]) -> bool:
        """Whether an optimizer is given NAME itself: it takes only what no graph made. The step leaves it as it is."""
        return (name, id(home)) in self._leaves and not any(self._is_inside(store) for store in stores)

    @cached_property
    def _leaves(self) -> set[tuple[str, int]]:
        """The names in the lists that optimizers of this file are given, each with the scope that binds it."""
        found = set()
        for call in (call for calls in self.script.facts.calls.values() for call in calls if call.tail[:1].isupper()):
            given = call.argument("params", 0)
            if isinstance(given, ast.List | ast.Tuple) and self.script.name(call).startswith("torch.optim."):
                names = (each.id for each in given.elts if isinstance(each, ast.Name))
                found |= {(name, id(self.script.names.home(name, call.scope))) for name in names}
        return found

    def _stored(self, store: Store, at: Call | Store) -> bool:
        if store.how in ("import", "define", "delete"):
            return True
        if store.how == "parameter":
            return self._parameter(store)
        if not self._is_inside(store) or store.order >= at.order:
            return self._is_plain(store)
        if store.how == "element":
            owner = isinstance(store.node, ast.For) and store.node is self.step.ring.block.owner
            return self._is_data(store) if owner else self.is_own(store.value, store, store.scope)
        if id(store) not in self._known:
            self._known[id(store)] = True  # a name that is computed from itself is what it was before
            self._known[id(store)] = self._assigned(store)
        return self._known[id(store)]

    def _assigned(self, store: Store) -> bool:
        own = self.is_own(store.value, store, store.scope)
        if own and store.how == "augment":
            return all(self._stored(each, store) for each in reaching(store.scope.stores[store.name], store))
        return own

    def _is_inside(self, store: Store) -> bool:
        return self.step.ring.block in store.path or id(store.scope) in self._inside

    def _is_data(self, store: Store) -> bool:
        """What the step's own loop goes through: a loader, a range, or a plain name for data."""
        value = store.value
        if value is None or is_batches(self.script, value, store.scope):
            return True
        called = value.func if isinstance(value, ast.Call) else value
        if isinstance(value, ast.Call) and dotted(value.func) in ("enumerate", "zip", "tqdm") and value.args:
            return all(self._is_through(each, store) for each in value.args)
        if dotted(called).rpartition(".")[2] in ("range", "count", "trange", "dataset", "batches", "data", "pbar"):
            return True
        return self._is_through(value, store)

    def _is_through(self, value: ast.expr, store: Store) -> bool:
        """Whether a loop over what a caller gives takes data out of it, by the name that it gives to that."""
        if is_batches(self.script, value, store.scope):
            return True
        unknown = all(origin.is_parameter for origin in self.script.trace.origins(value, store.scope))
        return unknown and bool(dotted(value)) and not _COMPUTED.search(store.name.lower())

    def _is_plain(self, store: Store) -> bool:
        """Whether a value from outside of the step holds no graph."""
        value = store.value
        if store.how in ("import", "define", "delete") or (store.how != "parameter" and value is None):
            return True
        if store.how == "parameter":
            return self._parameter(store)
        if store.how == "element":
            return self._is_data(store)
        if store.how == "enter" or value is None:
            return False
        if any(self._is_off(block, store.scope) for block in store.path):
            return True
        return self._has_no_graph(value, store)

    def _is_off(self, block: Block, scope: Scope) -> bool:
        """Whether BLOCK stands under no_grad or inference_mode."""
        items = block.owner.items if block.kind == "with" and isinstance(block.owner, ast.With) else ()
        calls = (item.context_expr for item in items)
        names = (self.script.names.resolve(each.func, scope) for each in calls if isinstance(each, ast.Call))
        return any(name in symbols().grad_free for name in names)

    def _has_no_graph(self, value: ast.expr, store: Store) -> bool:
        match value:
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()) | ast.List(elts=[]) | ast.Dict(keys=[]):
                return True
            case ast.ListComp(elt=part):
                return isinstance(part, ast.Call) and self._has_no_graph(part, store)
            case ast.Tuple(elts=parts):
                return all(self._has_no_graph(part, store) for part in parts)
            case ast.BinOp(left=left, right=right):
                return self._has_no_graph(left, store) and self._has_no_graph(right, store)
            case ast.Name() | ast.Attribute():
                setting = _SETTING.fullmatch(dotted(value).partition(".")[0].lower()) is not None
                return setting or (isinstance(value, ast.Name) and self._plays(value, store.scope))
        return isinstance(value, ast.Call) and self._makes_none(value, store)

    def _makes_none(self, call: ast.Call, store: Store) -> bool:
        if self._plays(call, store.scope) or (isinstance(call.func, ast.Attribute) and call.func.attr in _FRESH):
            return True
        name = self.script.names.resolve(call.func, store.scope)
        made = name.startswith(("builtins.", "argparse.")) or self._is_factory(name)
        return made and not any(each.arg == "requires_grad" for each in call.keywords)

    def _is_factory(self, name: str) -> bool:
        head, _, last = name.rpartition(".")
        return head == "torch" and last in FACTORIES | LIKE_FACTORIES | symbols().no_tensors

    def _parameter(self, store: Store) -> bool:
        """A setting, data by its name, or what every caller inside the step gives."""
        if _SETTING.fullmatch(store.name.lower()) or store.name == store.scope.receiver:
            return True
        if store.scope is self.step.ring.scope or id(store) in self._open:
            return store.name in BATCH or not _COMPUTED.search(store.name.lower())
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (store.scope.receiver in words[:1])
        sites = self.script.trace.sites(store.scope)
        given = [(site.argument(store.name, place), site) for site in sites]
        if not sites and store.name in _WHOLE:
            return True
        self._open.add(id(store))
        own = bool(given) and all(self.is_own(each, site, site.scope) for each, site in given)
        self._open.discard(id(store))
        return own

    def _attribute(self, node: ast.Attribute, at: Call | Store, scope: Scope) -> bool:
        root, _, rest = dotted(node).partition(".")
        if root and root == scope.receiver and scope.host is not None:
            return self._plays(node, scope) or self.is_settled(scope.host, rest.partition(".")[0])
        return self.is_own(node.value, at, scope)

    def is_settled(self, host: Scope, name: str) -> bool:
        """Whether self.NAME is set up once, when the object is made, and to nothing that a model computed."""
        stores = host.attributes.get(name, [])
        if not stores and self.script.trace.method(host, name) is not None:
            return True
        return bool(stores) and all(store.scope.name == "__init__" and not self._is_computed(store) for store in stores)

    def _is_computed(self, store: Store) -> bool:
        inside = ast.walk(store.value) if store.value is not None else ()
        calls = (each for each in inside if isinstance(each, ast.Call))
        return any(self.script.roles.plays(each.func, store.scope, "model") for each in calls)

    def _called(self, node: ast.Call, at: Call | Store, scope: Scope) -> bool:
        tail = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if tail in _FRESH or self._is_factory(self.script.names.resolve(node.func, scope)) or self._is_drawn(node):
            return True
        arguments: Iterable[ast.expr] = (*node.args, *(keyword.value for keyword in node.keywords))
        if not all(self.is_own(each, at, scope) for each in arguments):
            return False
        if self.script.roles.plays(node.func, scope, "model"):
            return self._is_stateless(node.func, scope)
        helper = self.script.trace.definition(node.func, scope)
        if helper is not None and helper.kind == "function":
            return self._reads_settled(helper)
        return self.is_own(node.func, at, scope) if helper is None else True

    def _is_drawn(self, node: ast.Call) -> bool:
        """Whether NODE takes data out of a store: buffer.sample(64), data.get_batch("train")."""
        if not isinstance(node.func, ast.Attribute) or not _DRAWS.match(node.func.attr):
            return False
        return _STORES.search(dotted(node.func.value).rpartition(".")[2].lower()) is not None

    def _is_stateless(self, model: ast.expr, scope: Scope) -> bool:
        """Whether the class of a model, if it stands in this file, writes to itself only when it is made."""
        host = self.script.trace.instance(model, scope)
        if host is None:
            return True
        stores = (
            store for base in self.script.trace.lineage(host) for found in base.attributes.values() for store in found
        )
        return all(store.scope.name == "__init__" for store in stores)

    def _reads_settled(self, helper: Scope) -> bool:
        """Whether a function of this file reads of its object only what is set up once."""
        if helper.host is None:
            return not helper.outside
        read = {dotted(each) for each in ast.walk(helper.node) if isinstance(each, ast.Attribute)}
        own = {name.split(".")[1] for name in read if name.partition(".")[0] == helper.receiver}
        return all(self.is_settled(helper.host, name) for name in own)


def _root(node: ast.AST) -> str:
    return dotted(node).partition(".")[0] if isinstance(node, ast.Name | ast.Attribute) else ""


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda)

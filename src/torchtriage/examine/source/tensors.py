"""Which values of a file are surely tensors: made by torch, computed from one, or a batch's part by name and use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

_TORCH = names(home="torch", returns="tensor") | {"where"}
_METHODS = names(home="method", returns="tensor", writes="-")
_PAIRS = names(home="method", returns="tensors") | names(home="method", returns="either")
_FUNCTIONAL = names(home="functional", returns="tensor")
BATCH = frozenset(
    {"x", "y", "xb", "yb", "image", "images", "img", "imgs", "input", "inputs", "label", "labels", "target", "targets"}
    | {"input_ids", "attention_mask", "mask", "masks", "token_type_ids", "real", "real_imgs", "src", "tgt", "trg"}
    | {"tokens", "pixel_values", "features", "batch_x", "batch_y", "x_batch", "y_batch", "data", "waveform", "audio"}
    | {"xs", "ys", "msk", "lbl", "lbls", "inp", "inps", "targ", "targs", "seq", "seqs", "lab", "labs", "bx", "by"}
)
_FORWARD = BATCH | frozenset(
    {"q", "k", "v", "query", "key", "value", "queries", "keys", "values", "h", "z", "hidden_states", "feat", "feats"}
    | {"emb", "embeddings", "logits", "scores", "pred", "preds", "prediction", "predictions", "output", "outputs"}
)
_WHOLE = frozenset({"batch", "sample", "data", "minibatch", "mini_batch"})
_SAME = names(home="attribute", returns="tensor")
_WRAPPERS = frozenset({"enumerate", "tqdm", "zip", "iter", "islice", "cycle", "track", "list", "prefetcher"})

_DEEP = 12

Spot = Call | Store | Return


def is_batches(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether a loop over NODE goes through batches: a loader, or what is called one, in the usual wrappers."""
    called = isinstance(node, ast.Call) and dotted(node.func).endswith("Loader")
    word = dotted(node.func if called and isinstance(node, ast.Call) else node).rpartition(".")[2].lower()
    if word.endswith("loaders"):  # a loader each turn
        return False
    if "loader" in word or word == "dl" or word.endswith("_dl") or script.roles.plays(node, scope, "loader"):
        return True
    if isinstance(node, ast.Call):
        wraps = dotted(node.func).rpartition(".")[2] in _WRAPPERS
        return wraps and any(is_batches(script, each, scope) for each in node.args)
    return False


class Tensors:
    """The tensors of one script. What is not known is no tensor.

    is_strict: a batch counts only when its loader is made in this file, with no collate_fn, and is unpacked: others
    may hold lists.
    """

    def __init__(self, script: Script, is_strict: bool = False) -> None:
        self.script, self.is_strict = script, is_strict
        self._known: dict[int, bool] = {}
        self._open: set[int] = set()
        # Graph and sparse libraries hand out batches with a `to` of their own, which may work in place.
        self._is_plain = not any(
            name.startswith(("torch_geometric", "dgl", "pytorch3d", "tensordict")) for name in script.facts.imports
        )

    def is_tensor(self, node: ast.expr | None, at: Spot, scope: Scope) -> bool:
        """Whether NODE, as it is read AT a point of SCOPE, is surely a tensor."""
        match node:
            case ast.Name(id=name):
                return self._named(name, at, scope)
            case ast.Call():
                return self._called(node, at, scope)
            case (
                ast.Compare(left=one, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[other])
                | ast.BinOp(left=one, right=other)
            ):
                return self.is_tensor(one, at, scope) or self.is_tensor(other, at, scope)
            case ast.Attribute(attr=attr) if attr not in _SAME:
                return self._attribute(node, scope)
            case ast.UnaryOp(op=ast.USub(), operand=value) | ast.Subscript(value=value) | ast.Attribute(value=value):
                part = isinstance(node, ast.Subscript) and self._is_field(value, at, scope)
                return part or self.is_tensor(value, at, scope)
        return False

    def _named(self, name: str, at: Spot, scope: Scope) -> bool:
        home = self.script.names.home(name, scope)
        if home is None:
            return False
        stores = [store for store in home.stores[name] if store.how != "augment"]
        return self._all(reaching(stores, at) if home is scope else stores)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> bool:
        root, _, rest = dotted(node).partition(".")
        if not rest or root != scope.receiver or scope.host is None:
            return False
        return self._all([store for store in scope.host.attributes.get(rest, ()) if store.how != "augment"])

    def _all(self, stores: list[Store]) -> bool:
        """Whether all STORES give a tensor, and one of them does not only pass on what the name was before."""
        found = [self._stored(store) for store in stores]
        return False not in found and True in found

    def _stored(self, store: Store) -> bool | None:
        """None for a store that is just being looked at: it gives what the others do."""
        key = id(store)
        if key in self._open:
            return None
        if key not in self._known:
            if len(self._open) > _DEEP:
                return False
            self._open.add(key)
            self._known[key] = self._made(store)
            self._open.discard(key)
        return self._known[key]

    def _made(self, store: Store) -> bool:
        value = store.value
        if store.how == "parameter":
            return self._is_note(value, store.scope) if value is not None else self._given(store)
        if store.how == "element":
            return value is not None and self._is_element(value, store)
        return store.how == "assign" and value is not None and self._is_assigned(value, store)

    def _is_assigned(self, value: ast.expr, store: Store) -> bool:
        if store.index is None:
            return self.is_tensor(value, store, store.scope)
        if isinstance(value, ast.Tuple | ast.List):
            return store.index < len(value.elts) and self.is_tensor(value.elts[store.index], store, store.scope)
        if isinstance(value, ast.GeneratorExp | ast.ListComp):  # a, b = (torch.stack(part) for part in zip(*rows))
            made = value.elt
            return (
                isinstance(made, ast.Call)
                and self._is_torch(made, store.scope)
                and self._called(made, store, store.scope)
            )
        if isinstance(value, ast.Call) and dotted(value.func) == "map" and len(value.args) == 2:  # map(torch.stack, …)
            head, _, last = self.script.names.resolve(value.args[0], store.scope).rpartition(".")
            return head == "torch" and last in _TORCH
        return self._is_pair(value, store) or self._is_batch(value, store)

    def _is_element(self, value: ast.expr, store: Store) -> bool:
        """Whether a loop over VALUE gives tensors: the parameters of a model, the named parts of a batch."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parameters":
            return True
        named = store.name in BATCH and store.index is not None and self._is_plain
        return named and self._gives_tensors(value, store.scope)

    def _given(self, store: Store) -> bool:
        """Whether every caller gives a tensor for a parameter; of a module's forward, by its name."""
        scope = store.scope
        if scope.name == "forward" and scope.host is not None:
            return store.name in _FORWARD and self._is_plain and self._is_module(scope.host)
        words = [each.arg for each in scope.parameters]
        place = words.index(store.name) - (scope.receiver in words[:1])
        sites = self.script.trace.sites(scope) if store.name not in _starred(scope) else ()
        return bool(sites) and all(self.is_tensor(site.argument(store.name, place), site, site.scope) for site in sites)

    def _is_module(self, host: Scope) -> bool:
        return any(self.script.roles.of_class(base) == "model" for base in self.script.trace.bases(host))

    def _gives_tensors(self, node: ast.expr, scope: Scope) -> bool:
        if not self.is_strict:
            return is_batches(self.script, node, scope)
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _WRAPPERS:
            return any(self._gives_tensors(each, scope) for each in node.args)
        made = [part.made for part in self.script.roles.made(node, scope, "loader") if part.made is not None]
        return bool(made) and all(keyword.arg not in ("collate_fn", None) for call in made for keyword in call.keywords)

    def _is_note(self, note: ast.expr, scope: Scope) -> bool:
        return self.script.names.resolve(note, scope) in symbols().tensor_classes

    def _is_pair(self, value: ast.expr, store: Store) -> bool:
        if (
            not isinstance(value, ast.Call)
            or not isinstance(value.func, ast.Attribute)
            or value.func.attr not in _PAIRS
        ):
            return False
        return self._is_torch(value, store.scope) or self.is_tensor(value.func.value, store, store.scope)

    def _is_batch(self, value: ast.expr, store: Store) -> bool:
        """inputs, labels = batch; x, y = next(iter(loader))"""
        if store.name not in BATCH or not self._is_plain:
            return False
        if isinstance(value, ast.Call) and dotted(value.func) == "next" and value.args:
            return self._gives_tensors(value.args[0], store.scope)
        return isinstance(value, ast.Name) and self._is_whole(value.id, store, store.scope)

    def _is_field(self, node: ast.expr, at: Spot, scope: Scope) -> bool:
        """A part of a batch: batch["image"], data[0]."""
        plain = self._is_plain and not self.is_strict
        return plain and isinstance(node, ast.Name) and self._is_whole(node.id, at, scope)

    def is_whole(self, node: ast.expr, at: Spot, scope: Scope) -> bool:
        """Whether NODE is a batch, as a loop over a loader gives it, of tensors."""
        return self._is_field(node, at, scope)

    def _is_whole(self, name: str, at: Spot, scope: Scope) -> bool:
        """Whether NAME is what a loop over batches gives, as a whole."""
        stores = reaching(scope.stores.get(name, ()), at)
        return bool(stores) and all(
            (store.how == "parameter" and name in _WHOLE and store.value is None and not self.is_strict)
            or (store.how == "element" and store.value is not None and self._gives_tensors(store.value, scope))
            for store in stores
        )

    def _is_torch(self, call: ast.Call, scope: Scope) -> bool:
        return self.script.names.resolve(call.func, scope).startswith("torch.")

    def _called(self, call: ast.Call, at: Spot, scope: Scope) -> bool:
        name = self.script.names.resolve(call.func, scope)
        if name:
            head, _, last = name.rpartition(".")
            if head == "torch":
                return last in _TORCH or (last in ("max", "min") and len(call.args) == 1 and not call.keywords)
            return head == "torch.nn.functional" and last in _FUNCTIONAL
        if isinstance(call.func, ast.Attribute):
            tail = call.func.attr
            if tail in _METHODS and any(_is_dim(each) for each in call.keywords):
                return True
            if tail in _METHODS or (tail in ("max", "min") and not call.args and not call.keywords):
                return self.is_tensor(call.func.value, at, scope)
        return self.script.roles.plays(call.func, scope, "criterion") or self._is_forward(call, scope)

    def _is_forward(self, call: ast.Call, scope: Scope) -> bool:
        """Whether CALL runs a model: not Network(…), nor build_model(…)."""
        word = dotted(call.func).rpartition(".")[2]
        if not word[:1].islower() or "_model" in word or not (call.args or call.keywords):
            return False
        if self.script.trace.definition(call.func, scope) is not None:
            return False
        return any(part.role == "model" and part.by != "unknown" for part in self.script.roles.parts(call.func, scope))


def _is_dim(keyword: ast.keyword) -> bool:
    """dim=1: arrays have an axis, and the dimensions of xarray have names."""
    value = keyword.value.operand if isinstance(keyword.value, ast.UnaryOp) else keyword.value
    return keyword.arg == "dim" and isinstance(value, ast.Constant) and isinstance(value.value, int)


def _starred(scope: Scope) -> set[str]:
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    return {each.arg for each in (node.args.vararg, node.args.kwarg) if each is not None}


def bound_inside(statement: ast.AST) -> set[str]:
    """The names that the comprehensions and lambdas inside of STATEMENT bind for themselves."""
    return set(_bound(statement))


def _bound(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.comprehension):
            yield from (each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))
        elif isinstance(node, ast.Lambda):
            yield from (each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))

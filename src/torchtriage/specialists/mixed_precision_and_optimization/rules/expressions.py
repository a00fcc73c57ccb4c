"""Arithmetic on tensors as it is written: what an operand is when the names of its own function are followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import CASTS, RESHAPES
from torchtriage.examine.source.torch_api.symbols import symbols

# Methods and functions that pick or rearrange elements.
_PICKS = CASTS | RESHAPES | symbols().choosing_methods | {"diag"}
# Words in the name of what is subtracted from an exponent, or bounds it, by which overflow is ruled out.
_BOUNDS = re.compile(
    "max|min|clamp|clip|abs|logsumexp|lse|log_|_log|logp|softplus|tanh|sigmoid|softmax|logits_shift|"
    "shifted|detach|norm_const|log_z|relu|cummax"
)
# Words of quantities that are small: durations, counts and coordinates are not, and lose nothing in 1 + x.
_SMALL = re.compile("eps|delta|tiny|small|rate|return|prob|perturb|noise|growth|drift|interest|yield|strain")
_DISTANCE = re.compile("dist(?!rib)|norm|square|sq$|pow|d2$")
_DEEP = 6


class Reading:
    """Reads expressions of one SCOPE as they are at USE."""

    def __init__(self, script: Script, scope: Scope, use: Spot, deep: int = 0) -> None:
        self.script, self.scope, self.use, self.deep = script, scope, use, deep

    def operand(self, node: ast.expr, operation: str) -> ast.expr | None:
        """Gives x where NODE is torch.OPERATION(x) or x.OPERATION(); None for anything else."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        name = self.script.names.resolve(node.func, self.scope)
        if name in (f"torch.{operation}", f"torch.special.{operation}") and len(node.args) == 1:
            return node.args[0]
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr == operation and not name
        if is_method and not node.args and isinstance(node.func, ast.Attribute):
            return node.func.value
        return None

    def end(self, node: ast.expr) -> ast.expr:
        """What NODE is when names, picks of elements and changes of shape are followed back."""
        for _ in range(_DEEP):
            inner = self._through(node)
            if inner is None:
                break
            node = inner
        return node

    def _through(self, node: ast.expr) -> ast.expr | None:
        """One step of the way back; None at the end."""
        match node:
            case ast.Name(id=name):
                return self._value(name)
            case ast.Subscript(value=value):
                return value
            case ast.BinOp() | ast.Call(func=ast.Attribute(attr="where")):
                return self._of_true_class(node)
            case ast.Call(func=ast.Attribute(attr="cat" | "stack"), args=[ast.List(elts=[first, *_]), *_]):
                return first
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _PICKS:
                name = self.script.names.resolve(node.func, self.scope)
                return value if not name else next(iter(node.args), None) if name.startswith("torch.") else None
        return None

    def _of_true_class(self, node: ast.expr) -> ast.expr | None:
        """The p of where(y, p, 1 - p), and of p * y + (1 - p) * (1 - y)."""
        match node:
            case ast.Call(args=[_, one, other]):
                pairs = [(one, other)]
            case ast.BinOp(op=ast.Add(), left=ast.BinOp(op=ast.Mult()) as one, right=ast.BinOp(op=ast.Mult()) as other):
                pairs = [(p, q) for p in (one.left, one.right) for q in (other.left, other.right)]
            case _:
                return None
        for p, rest in (*pairs, *((q, p) for p, q in pairs)):
            match rest:
                case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1), right=q) if ast.dump(p) == ast.dump(q):
                    return p
        return None

    def _value(self, name: str) -> ast.expr | None:
        """What the one store that NAME may come from gives it."""
        found = reaching(self.scope.stores.get(name, ()), self.use)
        if len(found) != 1 or found[0].how != "assign":
            return None
        value, index = found[0].value, found[0].index
        if index is None:
            return value
        return value.elts[index] if isinstance(value, ast.Tuple) and index < len(value.elts) else None

    def is_call(self, node: ast.expr, method: str, names: frozenset[str]) -> bool:
        """Whether NODE calls one of NAMES, an instance of such a class, or that METHOD of a tensor."""
        if not isinstance(node, ast.Call):
            return False
        name = self.script.names.resolve(node.func, self.scope)
        if name:
            return name in names and not name.rpartition(".")[2][:1].isupper()
        if isinstance(node.func, ast.Attribute) and node.func.attr == method and dotted(node.func) != f"self.{method}":
            return not self.script.roles.parts(node.func.value, self.scope)
        if (helper := self._helper(node)) is not None:
            return self._gives(helper, method, names)
        origins = self.script.trace.origins(node.func, self.scope)
        made = [self._made(origin.call, origin.scope) for origin in origins]
        return bool(made) and all(each in names and each.rpartition(".")[2][:1].isupper() for each in made)

    def _made(self, call: ast.Call | None, scope: Scope) -> str:
        """The class of the module that CALL makes; of a Sequential, that of its last module."""
        name = self.script.names.resolve(call.func, scope) if call is not None else ""
        last = call.args[-1] if call is not None and call.args and name == "torch.nn.Sequential" else None
        return self._made(last, scope) if isinstance(last, ast.Call) else name

    def _helper(self, node: ast.Call) -> Scope | None:
        """The function of this file that NODE calls; of a module, its forward."""
        trace = self.script.trace
        found = trace.definition(node.func, self.scope)
        if found is None or found.kind == "class":
            host = trace.instance(node.func, self.scope) if found is None else None
            found = trace.method(host, "forward") if host is not None else None
        return found if found is not None and self.deep < 2 else None

    def _gives(self, helper: Scope, method: str, names: frozenset[str]) -> bool:
        """Whether every return of HELPER ends at such a call."""
        readings = [(Reading(self.script, helper, each, self.deep + 1), each.node.value) for each in helper.returns]
        return bool(readings) and all(
            value is not None and read.is_call(read.end(value), method, names) for read, value in readings
        )

    # exponentials

    def power(self, node: ast.expr, deep: int = 0) -> ast.expr | None:
        """Gives x where NODE ends at exp(x), or at its product with something; None where x is bounded from above."""
        end = self.end(node)
        match end:
            case ast.Call(func=ast.Attribute(value=held, attr="masked_fill" | "triu" | "tril" | "clone")):
                return self.power(held, deep + 1) if deep < _DEEP else None
        if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult) and deep < _DEEP:  # e = e * mask names itself
            return self.power(end.left, deep + 1) or self.power(end.right, deep + 1)
        inner = self.operand(end, "exp")
        return None if inner is None or self.is_bounded(inner) else inner

    def is_bounded(self, node: ast.expr) -> bool:
        """Whether the words in NODE, and in what its names were given, speak of a bound."""
        return self._is_negated_distance(node) or any(_BOUNDS.search(word) for word in self._words(node, 0))

    def _is_negated_distance(self, node: ast.expr) -> bool:
        """Whether NODE is -d, -gamma * d2 or d / -2: never above 0, as a distance never lies below it."""
        if any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add | ast.Sub) for each in ast.walk(node)):
            return False
        signs = sum(isinstance(each, ast.USub) for each in ast.walk(node))
        return signs == 1 and any(_DISTANCE.search(word) for word in self._words(node, 0))

    def _words(self, node: ast.expr, deep: int) -> Iterator[str]:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute):
                yield inner.attr.lower()
            elif isinstance(inner, ast.Name):
                yield inner.id.lower()
                for store in self.scope.stores.get(inner.id, ()) if deep < 3 else ():
                    if store.value is not None and _is_before(store, self.use):
                        yield from self._words(store.value, deep + 1)

    def is_small(self, node: ast.expr) -> bool:
        """Whether the words in NODE, or a number below 0.1 in it, say that it is a small quantity."""
        numbers = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
        if any(isinstance(value, float) and 0 < value < 0.1 for value in numbers):
            return True
        return any(_SMALL.search(word) for word in self._words(node, _DEEP))

    def is_sum_of_exp(self, node: ast.expr) -> bool:
        summed = self._summed(node)
        return summed is not None and self.power(summed) is not None

    def _summed(self, node: ast.expr) -> ast.expr | None:
        """Gives x where NODE is torch.sum(x, …) or x.sum(…)."""
        if not isinstance(node, ast.Call):
            return None
        name = self.script.names.resolve(node.func, self.scope)
        if name == "torch.sum":
            return node.args[0] if node.args else None
        match node.func:
            case ast.Attribute(value=value, attr="sum") if not name:
                return value
        return None

    def is_softmax(self, node: ast.BinOp) -> bool:
        """Whether NODE divides an exponential by a sum that it is a term of, or by a sum of exponentials."""
        power = self.power(node.left)
        if power is None:
            return False
        whole = self.end(node.right)
        if self.is_sum_of_exp(whole):
            return True
        same = ast.dump(power)
        if any(isinstance(term, ast.Constant) and term.value == 1 for term in self._terms(whole)):  # a sigmoid
            return False
        return any(
            ast.dump(found) == same
            for term in self._terms(whole)
            if (found := self.power(self._summed(self.end(term)) or term)) is not None
        )

    def _terms(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from (*self._terms(node.left), *self._terms(node.right))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            yield from self._terms(node.left)
        else:
            yield node

    def logsumexp(self, outer: ast.Call, remedy: str) -> tuple[Edit, ...]:
        """Mends torch.log(torch.sum(torch.exp(x), dim=…)) to torch.logsumexp(x, dim=…); none without a dimension."""
        match outer:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch")),
                args=[ast.Call(func=ast.Attribute(value=holder), args=args, keywords=keywords)],
            ):
                by_function = dotted(holder) == "torch"
                summed, rest = (args[0], args[1:]) if by_function and args else (holder, args)
                power = self.operand(summed, "exp")
                plain = all(keyword.arg in ("dim", "keepdim") for keyword in keywords)
                if power is None or not plain or not (rest or any(k.arg == "dim" for k in keywords)):
                    return ()
                words = [*map(self.script.source, rest), *(f"{k.arg}={self.script.source(k.value)}" for k in keywords)]
                return replaced(self.script, remedy, outer, f"torch.logsumexp({{}}, {', '.join(words)})", power)
        return ()


def _is_before(store: Store, use: Spot) -> bool:
    return store.order < use.order


def replaced(script: Script, remedy: str, node: ast.expr, form: str, inner: ast.expr) -> tuple[Edit, ...]:
    """The edit that puts FORM, with the text of INNER in its braces, in the place of NODE."""
    first, last = script.text.span(inner)
    text = script.text.data[first:last].decode(errors="replace")
    return () if "\n" in text or "#" in text else script.replaced(remedy, node, form.replace("{}", text))


def renamed(
    script: Script, remedy: str, outer: ast.expr, inner: ast.expr, names: Mapping[str, str]
) -> tuple[Edit, ...]:
    """The edit that leaves of OUTER only the call INNER, under its new name: by its full name or its last word."""
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return ()
    old = dotted(inner.func) if dotted(inner.func) in names else inner.func.attr
    (first, last), (_, called), data = script.text.span(inner), script.text.span(inner.func), script.text.data
    before, behind = data[first : called - len(old.encode())], data[called:last]
    if old not in names or b"#" in before + behind:
        return ()
    new = before.decode(errors="replace") + names[old] + behind.decode(errors="replace")
    return script.replaced(remedy, outer, new)

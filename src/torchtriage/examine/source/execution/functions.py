"""Functions of autograd that the project writes: what forward keeps, and what backward gives back."""

from __future__ import annotations

import ast

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.attributes import FUNCTION, Attributes
from torchtriage.examine.source.execution.values import (
    Arguments,
    Class,
    Function,
    Keywords,
    Object,
    Spot,
    Tensor,
    Unknown,
    Value,
)


class Functions(Attributes):
    """A call of `apply`: forward, and then at once backward, as the backward pass would."""

    applied: set[int]
    """Those that have been executed already: each is once."""

    def apply(self, cls: Class, arguments: Arguments, node: ast.AST) -> Value:
        """CLS.apply(ARGUMENTS)."""
        forward, backward, setup = cls.method("forward"), cls.method("backward"), cls.method("setup_context")
        result = self.merged(arguments, node)
        if forward is None or backward is None or id(cls) in self.applied:
            return result
        self.applied.add(id(cls))
        context = Object("context", FUNCTION, None, self.spot(node))
        inputs = [each for each in arguments if isinstance(each, Tensor)]
        for each in inputs:
            each.context = context
        if setup is None:
            output = self.call(forward, (context, *arguments), {}, node)
        else:
            output = self.call(forward, arguments, {}, node)
            self.call(setup, (context, tuple(arguments), output), {}, node)
        for each in inputs:
            each.context = None
        for edited, spot in context.state.get("edited", ()):
            if not any(edited is each for each in context.state.get("dirty", ())):
                self.happen(events.DirtyInput(spot))
        outputs = output if isinstance(output, tuple) else (output,)
        self._note_kept(context, (*arguments, *outputs), forward)
        gradients = tuple(Tensor(self.spot(node)) for each in outputs if isinstance(each, Tensor))
        for each in gradients:
            each.is_gradient = True
        given = self.call(backward, (context, *gradients), {}, node)
        self._note_count(given, len(arguments), backward)
        return result

    def _note_kept(self, context: Object, tensors: Arguments, forward: Function) -> None:
        for name, value in context.values.items():
            if any(value is each for each in tensors if isinstance(each, Tensor)):
                spot = context.state.get("spots", {}).get(name) or Spot(forward.frame.file.path, forward.node)
                self.happen(events.ContextValue(spot, name))

    def _note_count(self, given: Value, wanted: int, backward: Function) -> None:
        if isinstance(given, Unknown) or wanted == 0:
            return
        gradients = list(given) if isinstance(given, tuple | list) else [given]
        while len(gradients) > wanted and gradients[-1] is None:  # torch takes too many as long as they are None
            gradients.pop()
        number = len(gradients)
        if number != wanted:
            returned = [each for each in ast.walk(backward.node) if isinstance(each, ast.Return)]
            spot = Spot(backward.frame.file.path, returned[-1] if returned else backward.node)
            self.happen(events.GradientCount(spot, number, wanted))

    def context_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) of the context of an autograd function."""
        if name == "save_for_backward":
            for each in arguments:
                if isinstance(each, int | float | str | list | dict):
                    self.happen(events.SavedValue(self.spot(node), each))
            held.state["saved"] = arguments
        elif name == "mark_dirty":
            held.state["dirty"] = arguments
        return None

"""Models of sequences of ids: whether an answer depends on what comes later, and whether it is asked for that."""

from __future__ import annotations

from typing import Any

from .delivery import is_varied

FEW = 3  # samples, or positions, at least, that can be told apart
CODES = ("autoenc", "vae", "seq2seq")  # in the names of classes whose answers go through a code of the whole sequence


class Later:
    """How much each answer about one sequence changes when its second half is exchanged.

    ids: all sequences; row: the changed one; changes: of its positions, as shares of the spread of all answers.
    """

    def __init__(self, ids: Any, row: int, changes: Any) -> None:
        self.ids, self.row, self.changes = ids, row, changes

    def judged_by(self, target: Any, ignored: int) -> tuple[float | None, float | None]:
        """By how much those answers of the first half change whose TARGET counts; and of all targets the share that is
        the id of the next position, of those where that one is another id than the one at hand. None: not known.
        """
        rows, length = self.ids.shape
        if target.is_floating_point() or target.numel() not in (rows * length, rows * (length - 1)):
            return None, None
        wanted = target.reshape(rows, -1)[:, : length - 1]
        counts = (wanted != ignored) & (wanted >= 0)
        tells = counts & (self.ids[:, 1:] != self.ids[:, :-1])
        shifted = float(((wanted == self.ids[:, 1:]) & tells).sum() / tells.sum()) if int(tells.sum()) >= FEW else None
        asked = counts[self.row, : length // 2]
        later = self.changes[: length // 2][asked]
        return (float(later.max()) if len(later) else None), shifted


def has_code(module: Any) -> bool:
    """Whether answers may go through a code of the whole sequence, as those of an autoencoder: a decoder beside an
    encoder, which is more than a last layer that is called so.
    """
    from torch.nn import RNNBase

    names = [type(part).__name__.lower() for part in module.modules()]
    decoders = [part for name, part in module.named_children() if "decod" in name.lower()]
    encoders = [name for name, _ in module.named_children() if "encod" in name.lower()]
    deep = any(isinstance(part, RNNBase) or any(True for _ in part.children()) for part in decoders)
    return any(word in name for word in CODES for name in names) or (bool(encoders) and deep)


def is_ids(tensor: Any) -> bool:
    """Whether a tensor may hold sequences of ids: no mask, and no positions, which are the same in all rows."""
    if tensor.dim() != 2 or tensor.is_floating_point() or tensor.is_complex():
        return False
    return len(tensor.unique()) > 2 and is_varied(tensor)

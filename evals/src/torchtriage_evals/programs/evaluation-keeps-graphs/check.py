"""What an evaluation returns keeps no graph, and is still what the model says."""

from typing import Any

import torch

from torchtriage_evals.programs.seen import Held


def check(program: Any) -> None:
    torch.manual_seed(0)
    model = program.make_model()
    batches = [(torch.randn(8, 32), torch.randint(4, (8,))) for _ in range(6)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = program.train_step(model, optimizer, *batches[0])
    with Held() as held:
        accuracy, logits = program.evaluate(model, batches)
        assert held.now == 0, f"{held.now} tensors are still kept for a backward after the evaluation"
    assert len(logits) == len(batches), "the logits of a batch are gone"
    with torch.no_grad():
        assert all(torch.equal(model(x), each) for (x, _), each in zip(batches, logits, strict=True)), "other logits"
    right = sum(int((each.argmax(1) == y).sum()) for (_, y), each in zip(batches, logits, strict=True))
    assert accuracy == right / 48, "another accuracy"
    after = [program.train_step(model, optimizer, *batches[0]) for _ in range(30)][-1]
    assert after < before, "training after the evaluation no longer learns"

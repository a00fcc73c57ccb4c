"""A training that counts its steps and renames its checkpoint into place."""

import os

import torch
from transformers import AutoModelForCausalLM, get_cosine_schedule_with_warmup


def pretrain(data, out, total=10_000):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    optim = torch.optim.AdamW(model.parameters(), lr=5e-5)
    lr_sched = get_cosine_schedule_with_warmup(optim, 100, total)
    step = 0
    last = os.path.join(out, "last.pt")
    if os.path.exists(last):
        blob = torch.load(last, map_location="cpu")  # expect: checkpoint-incomplete
        model.load_state_dict(blob["model"])
        optim.load_state_dict(blob["optim"])
        step = blob["step"]
    it = iter(data)
    while step < total:
        batch = next(it)
        loss = model(**batch).loss
        loss.backward()
        optim.step()
        lr_sched.step()
        optim.zero_grad()
        step += 1
        if step % 500 == 0:
            part = last + ".part"
            torch.save(
                {
                    "model": model.state_dict(),
                    "optim": optim.state_dict(),
                    "lr_sched": lr_sched.state_dict(),
                    "step": step,
                },
                part,
            )
            os.replace(part, last)

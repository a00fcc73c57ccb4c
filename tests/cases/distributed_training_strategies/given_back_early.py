import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM
def build(name):
    model = AutoModelForCausalLM.from_pretrained(name)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5)  # expect: optimizer-before-sharding
def main():
    dist.init_process_group("nccl")
    model, opt = build("gpt2")
    for layer in model.transformer.h:
        fully_shard(layer)
    fully_shard(model)
    for ids in torch.load("ids.pt", weights_only=True):
        model(input_ids=ids.cuda(), labels=ids.cuda()).loss.backward()
        opt.step()
        opt.zero_grad()
main()

import os, torch, torch.distributed as dist
from datasets import load_dataset
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator

def get_loader(tokenizer, bs):
    raw = load_dataset("wikitext", "wikitext-2-raw-v1", split="train")
    tokenized = raw.map(lambda e: tokenizer(e["text"], truncation=True, padding="max_length"), batched=True)
    tokenized.set_format("torch", columns=["input_ids", "attention_mask"])
    return DataLoader(tokenized, batch_size=bs, sampler=DistributedSampler(tokenized, seed=1), collate_fn=default_data_collator)

def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    tok = AutoTokenizer.from_pretrained("gpt2")
    model = FSDP(AutoModelForCausalLM.from_pretrained("gpt2"), device_id=torch.cuda.current_device())
    optim = torch.optim.AdamW(model.parameters(), lr=2e-5)
    loader = get_loader(tok, 4)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            batch = {k: v.cuda() for k, v in batch.items()}
            out = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["input_ids"])
            out.loss.backward()
            optim.step()
            optim.zero_grad()
main()

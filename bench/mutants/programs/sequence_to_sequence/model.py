import math

import torch
from torch import Tensor, nn

from vocab import BOS, EOS, PAD


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 64) -> None:
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(position * rates)
        table[:, 1::2] = torch.cos(position * rates)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(1)]


class Seq2SeqTransformer(nn.Module):
    """Pre-norm layers, with a last norm on both sides."""

    def __init__(self, vocab_size: int, hp: dict) -> None:
        super().__init__()
        d_model = hp["d_model"]
        self.scale = math.sqrt(d_model)
        self.embed = nn.Embedding(vocab_size, d_model, padding_idx=PAD)
        self.positions = PositionalEncoding(d_model)
        self.drop = nn.Dropout(hp["dropout"])
        shared = {
            "nhead": hp["n_heads"],
            "dim_feedforward": hp["d_ff"],
            "dropout": hp["dropout"],
            "batch_first": True,
            "norm_first": True,
        }
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d_model, **shared),
            hp["n_encoder_layers"],
            norm=nn.LayerNorm(d_model),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(d_model, **shared), hp["n_decoder_layers"], norm=nn.LayerNorm(d_model)
        )
        self.generator = nn.Linear(d_model, vocab_size)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # nn.TransformerEncoder copies one layer: every copy gets weights of its own here
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embed.weight, std=self.scale**-1)
        nn.init.normal_(self.generator.weight, std=0.02)
        nn.init.zeros_(self.generator.bias)
        with torch.no_grad():
            self.embed.weight[PAD].zero_()

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.drop(self.positions(self.embed(tokens) * self.scale))

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor]:
        src_pad = src == PAD
        return self.encoder(self._embed(src), src_key_padding_mask=src_pad), src_pad

    def decode(self, tgt: Tensor, memory: Tensor, src_pad: Tensor) -> Tensor:
        size = tgt.size(1)
        causal = torch.ones(size, size, dtype=torch.bool, device=tgt.device).triu(diagonal=1)
        hidden = self.decoder(
            self._embed(tgt),
            memory,
            tgt_mask=causal,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src_pad,
        )
        return self.generator(hidden)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        memory, src_pad = self.encode(src)
        return self.decode(tgt, memory, src_pad)

    @torch.no_grad()
    def greedy(self, src: Tensor, max_len: int) -> Tensor:
        """(batch, max_len) tokens after the begin token; padding follows the end token."""
        memory, src_pad = self.encode(src)
        tokens = torch.full((src.size(0), max_len + 1), PAD, device=src.device)
        tokens[:, 0] = BOS
        finished = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
        for t in range(max_len):
            choice = self.decode(tokens[:, : t + 1], memory, src_pad)[:, -1].argmax(dim=-1)
            tokens[:, t + 1] = choice.masked_fill(finished, PAD)
            finished |= choice == EOS
            if finished.all():
                break
        return tokens[:, 1:]

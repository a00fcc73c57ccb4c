"""Settings by name; --preset chooses one of them."""

BASE = {
    "min_len": 3,
    "max_len": 5,
    "n_train": 1280,
    "n_val": 192,
    "data_seed": 99,
    "d_model": 48,
    "n_heads": 4,
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
    "d_ff": 96,
    "dropout": 0.0,
    "label_smoothing": 0.05,
    "micro_batch": 16,
    "accumulate": 2,
    "epochs": 3,
    "warmup": 12,
    "lr": 5e-3,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "log_every": 12,
}

PRESETS = {
    "small": BASE,
    "long": {
        **BASE,
        "max_len": 12,
        "n_encoder_layers": 2,
        "n_decoder_layers": 2,
        "n_train": 50_000,
        "epochs": 4,
        "lr": 2e-3,
    },
}

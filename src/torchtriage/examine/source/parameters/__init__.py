"""What list(model.named_parameters()) would give, read from the source of a model: for what a message only numbers."""

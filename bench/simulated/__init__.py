"""Jobs on the simulated accelerator: the process that runs one, and what its ledger alone says of it."""

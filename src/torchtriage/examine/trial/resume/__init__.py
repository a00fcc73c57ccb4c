"""Whether a resumed job goes on as if it had never stopped: three legs, and their whole states compared."""

"""Source code as detectors see it: names resolved, roles inferred, training steps found."""

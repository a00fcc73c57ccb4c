"""Programs with a planted bug: the text, the patch that mends it, patches that only seem to, and a check."""

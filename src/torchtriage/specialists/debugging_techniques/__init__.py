"""Why a loss is wrong, and where a NaN was born."""

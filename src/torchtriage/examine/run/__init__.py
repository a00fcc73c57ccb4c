"""A job, launched unchanged under probes, and the record that it leaves."""

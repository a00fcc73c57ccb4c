"""What lies inside a job whose repetition is tried: standard library and the job's own torch only."""

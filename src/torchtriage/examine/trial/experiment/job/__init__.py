"""What lies inside a job that is experimented on: standard library and the job's own torch only."""

"""What a job left behind: traces, snapshots, dumps, logs, curves. Every kind has a package; files are data."""

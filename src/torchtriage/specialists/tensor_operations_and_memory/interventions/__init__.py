"""What can be changed in what a training keeps in memory, to see whether it needs less: loaded by path, in the job."""

"""What can be changed in the precision of a training, to see whether that is the cause: loaded by path, in the job."""

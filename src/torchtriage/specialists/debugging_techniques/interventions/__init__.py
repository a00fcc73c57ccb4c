"""What can be changed in a training, to see whether that is what goes wrong: loaded by path, inside the job."""

"""What can be changed in how a training is carried out, to see whether it is faster so: loaded by path, in the job."""

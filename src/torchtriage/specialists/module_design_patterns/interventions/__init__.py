"""What can be changed in a model, to see whether it holds a training back: loaded by path, inside the job."""

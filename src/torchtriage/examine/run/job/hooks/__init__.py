"""What is put into torch and the interpreter: each module fires events of the job, or writes down what it has seen."""

"""What is known of the objects of the job: root modules, optimizers, loss scaling, batches, failed passes."""

"""What a run's folder tells: the record of each rank, how processes ended, what could not be seen."""

"""What a job must save to go on as if it had never stopped."""

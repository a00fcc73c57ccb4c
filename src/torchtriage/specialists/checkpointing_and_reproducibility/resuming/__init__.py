"""What is known of resumed trainings: which state is which component, what follows from what, what means nothing."""

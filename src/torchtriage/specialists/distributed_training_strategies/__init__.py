"""Many ranks as one job."""

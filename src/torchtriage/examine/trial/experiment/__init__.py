"""torchtriage experiment: one thing is changed inside the unchanged job, and the job tells whether that matters."""

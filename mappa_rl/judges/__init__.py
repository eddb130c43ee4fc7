"""Judges that run a model in this process."""

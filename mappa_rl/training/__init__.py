"""The parts of a training run: what is made, what one step does, what is kept on disk."""

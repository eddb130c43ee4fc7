"""The benchmark: environment x topology x policy x algorithm x seed from one file, on the same problems and seeds."""

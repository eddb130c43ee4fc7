"""Maths tasks: procedural families, problem files, public data sets."""

"""Grading by ground truth: final answers of maths problems, and submissions of tables."""

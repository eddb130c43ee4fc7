"""Rollouts: many episodes at once, and the training rows that come of them."""

"""Evaluation: playing held-out tasks, statistics with intervals, records that survive a crash, paired comparison."""

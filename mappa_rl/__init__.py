"""Reinforcement learning for teams of language-model agents, each with a LoRA adapter of its own."""

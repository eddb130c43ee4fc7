"""Reinforcement learning for teams of language-model agents, each with a LoRA adapter of its own."""

import logging

# PEFT imports bitsandbytes where it is installed, which warns of kernels for 4-bit models; there are none here.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

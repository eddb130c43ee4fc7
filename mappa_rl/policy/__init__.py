"""Policies: LoRA teams over one base model, scripts, and the embedded tiny model."""

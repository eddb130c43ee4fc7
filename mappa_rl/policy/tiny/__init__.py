"""The embedded tiny base model: weights in `weights/`, made by `python -m mappa_rl.policy.tiny.build`."""

from hypothesis import settings

# A busy machine must not fail a property test: how long an example takes is no property of the code.
settings.register_profile("mappa", deadline=None, max_examples=60)
settings.load_profile("mappa")

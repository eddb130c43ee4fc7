"""How far a judge can be trusted, and what another one would have said, from stored episodes."""

"""Tasks and where they come from, by domain."""

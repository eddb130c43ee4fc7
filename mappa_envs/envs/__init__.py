"""The built-in environments: topology + task source + judge."""

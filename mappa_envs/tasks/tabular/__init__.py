"""Tasks on tables: predict one column of the test rows from a table of training rows."""

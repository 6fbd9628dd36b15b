"""User files as tables: their format is determined once, then they are read in memory or in batches."""

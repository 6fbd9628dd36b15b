"""A user's files as tables: found out once what they are, then read at once or batch by batch."""

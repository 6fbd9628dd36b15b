"""The model: from columns and counts to log densities."""

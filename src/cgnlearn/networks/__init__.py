"""Conditional Gaussian networks: what is counted, how parameters are estimated, and the densities that follow."""

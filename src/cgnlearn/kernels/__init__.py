"""Compiled loops: every function of the package that numba compiles.

This room imports nothing else of the package, so that what is compiled depends on its files alone. Modules other than
`limits` and `downdate` import numba, which takes half a second: import them where a large job begins.
"""

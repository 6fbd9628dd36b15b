"""Compiled loops: every function of the package that numba compiles.

The kernels import nothing else of the package, so compiled code depends on these files alone. All modules except
`arguments`, `limits` and `downdate` import numba, which takes half a second: import them where a large job begins.
"""

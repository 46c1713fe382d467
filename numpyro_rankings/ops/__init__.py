"""Pure, jit-able numerics. No module here imports NumPyro."""

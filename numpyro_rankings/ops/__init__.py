"""Pure, jit-able numerics. Nothing in here knows NumPyro."""

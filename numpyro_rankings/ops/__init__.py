"""Pure numerics. No module here imports NumPyro."""

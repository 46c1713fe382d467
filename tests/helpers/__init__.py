"""What several test files share: exact answers, registries of kernels, data, comparisons."""

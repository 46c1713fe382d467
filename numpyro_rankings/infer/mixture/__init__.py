"""What mixtures of rankings share: priors of partitions, labels, moves without the labels."""

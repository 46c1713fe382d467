"""What links the points of a distance dependent process: distances and decays."""

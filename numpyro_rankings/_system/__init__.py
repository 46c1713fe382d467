"""What depends on the system: XLA, memory, the clock, signals."""

"""What is told of exchanges: log, metrics, traces, prices."""

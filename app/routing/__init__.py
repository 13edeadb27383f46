"""Which endpoint a name means, and which of several is asked first."""

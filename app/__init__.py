"""The service: HTTP in, HTTP out, and everything that needs a clock or a socket of our own."""

"""Backends: accounts, what they serve, and the HTTP client that reaches them."""

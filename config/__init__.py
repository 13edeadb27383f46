"""The configuration: its schema, its checks, and how it is loaded."""

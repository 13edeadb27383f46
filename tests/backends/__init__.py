"""Backends and gateways that tests start: every byte they send is scripted, everything they get is kept."""

"""Who may ask what, and how much of it: keys, scopes, limits, web pages."""

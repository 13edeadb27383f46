"""Many exchanges, good and broken ones, and what they leave behind."""

"""What fits into a model: truncation, compaction, counting, answers that were cut off."""

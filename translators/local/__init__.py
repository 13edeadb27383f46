"""What local models write and are told: text formats of thoughts and calls, grammars."""

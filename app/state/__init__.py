"""What is kept of answers: stored responses, conversations, background runs."""

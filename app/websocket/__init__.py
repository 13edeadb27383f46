"""`/v1/responses` over a WebSocket."""

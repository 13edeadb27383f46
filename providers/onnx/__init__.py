"""Local ONNX models, each in a process of its own."""

"""The library: requests and replies from one OpenAI shape to another, without any I/O.

Pure values in and out, in the manner of h11. Nothing here knows an HTTP client, a clock, a
random source or a log; ids and time are handed in (`dialect.ReplyContext`).
"""

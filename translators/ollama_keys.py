"""Keys of a request that only Ollama has (S ollama api/types.go), for the profile and for its dialect.

On their own, so that whoever only reads a configuration needs no translator.
"""

OPTIONS = frozenset(
    {
        *("num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap"),
        *("top_k", "min_p", "typical_p", "repeat_last_n", "repeat_penalty", "draft_num_predict"),
    }
)
"""Options with no name in OpenAI's API: clients send them at the top or in `options`."""

OWN = frozenset({"options", "think", "keep_alive", "truncate", "shift"})
"""Keys of the request itself."""

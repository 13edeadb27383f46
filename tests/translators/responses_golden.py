"""Event logs and the golden event streams of the items they tell, one line an event (see `brief`)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.translators.responses_player import START, STOP, call, text
from translators.ir import Closed, Delta, Event, Finished, Json, Opened, Usage


@dataclass
class Case:
    name: str
    log: list[Event]
    golden: str
    context: Json | None = None


HEAD = "created in_progress 0\nin_progress in_progress 0\n"

ITEMS = [
    Case(
        "text",
        [START, *text(0, "Hel", "lo"), STOP],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'Hel'
        output_text.delta o0 c0 'lo'
        output_text.done o0 c0 'Hello'
        content_part.done o0 c0 output_text 'Hello'
        output_item.done o0 msg_1 message completed content['Hello']
        completed completed 1
        """,
    ),
    Case("nothing", [START, STOP], "completed completed 0"),
    Case(
        "empty text",
        [START, *text(0, ""), Finished("content_filter")],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.done o0 c0 ''
        content_part.done o0 c0 output_text ''
        output_item.done o0 msg_1 message incomplete content['']
        incomplete incomplete 1
        """,
    ),
    Case(
        "reasoning summary, then text",
        [
            START,
            *(Opened(0, "summary"), Delta(0, "Th"), Delta(0, "ink"), Closed(0, sealed="gAAA")),
            *text(1, "Hi"),
            STOP,
        ],
        """
        output_item.added o0 rs_1 reasoning in_progress summary[]
        reasoning_summary_part.added o0 s0 summary_text ''
        reasoning_summary_text.delta o0 s0 'Th'
        reasoning_summary_text.delta o0 s0 'ink'
        reasoning_summary_text.done o0 s0 'Think'
        reasoning_summary_part.done o0 s0 summary_text 'Think'
        output_item.done o0 rs_1 reasoning completed "gAAA" summary['Think']
        output_item.added o1 msg_1 message in_progress content[]
        content_part.added o1 c0 output_text ''
        output_text.delta o1 c0 'Hi'
        output_text.done o1 c0 'Hi'
        content_part.done o1 c0 output_text 'Hi'
        output_item.done o1 msg_1 message completed content['Hi']
        completed completed 2
        """,
    ),
    Case(
        "two summary parts and raw reasoning are one item",
        [
            START,
            *(Opened(0, "summary"), Delta(0, "a"), Closed(0)),
            *(Opened(1, "reasoning", joins=True), Delta(1, "raw"), Closed(1)),
            *(Opened(2, "summary", joins=True), Delta(2, "b"), Closed(2)),
            STOP,
        ],
        """
        output_item.added o0 rs_1 reasoning in_progress summary[]
        reasoning_summary_part.added o0 s0 summary_text ''
        reasoning_summary_text.delta o0 s0 'a'
        reasoning_summary_text.done o0 s0 'a'
        reasoning_summary_part.done o0 s0 summary_text 'a'
        content_part.added o0 c0 reasoning_text ''
        reasoning_text.delta o0 c0 'raw'
        reasoning_text.done o0 c0 'raw'
        content_part.done o0 c0 reasoning_text 'raw'
        reasoning_summary_part.added o0 s1 summary_text ''
        reasoning_summary_text.delta o0 s1 'b'
        reasoning_summary_text.done o0 s1 'b'
        reasoning_summary_part.done o0 s1 summary_text 'b'
        output_item.done o0 rs_1 reasoning completed summary['a', 'b'] content['raw']
        completed completed 1
        """,
    ),
    Case(
        "sealed reasoning only has no parts",
        [START, Opened(0, "summary"), Closed(0, sealed="gAAA"), STOP],
        """
        output_item.added o0 rs_1 reasoning in_progress summary[]
        output_item.done o0 rs_1 reasoning completed "gAAA" summary[]
        completed completed 1
        """,
    ),
    Case(
        "text, then a call whose done waits for the end",
        [START, *text(0, "Let me."), *call(1, '{"a"', ":1}"), Finished("tool_calls", Usage(1, 1))],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'Let me.'
        output_text.done o0 c0 'Let me.'
        content_part.done o0 c0 output_text 'Let me.'
        output_item.done o0 msg_1 message completed content['Let me.']
        output_item.added o1 fc_1 function_call in_progress f ""
        function_call_arguments.delta o1 '{"a"'
        function_call_arguments.delta o1 ':1}'
        function_call_arguments.done o1 '{"a":1}'
        output_item.done o1 fc_1 function_call completed f "{\\"a\\":1}"
        completed completed 2
        """,
    ),
    Case(
        "calls in parallel leave one after another, text behind them too",
        [
            START,
            Opened(0, "tool_call", "call_a", "f"),
            Opened(1, "tool_call", "call_b", "g"),
            *(Delta(1, "{"), Delta(0, "{"), Delta(1, "}"), Delta(0, "}")),
            *(Closed(1), Closed(0)),
            *text(2, "do", "ne"),
            STOP,
        ],
        """
        output_item.added o0 fc_1 function_call in_progress f ""
        function_call_arguments.delta o0 '{'
        function_call_arguments.delta o0 '}'
        function_call_arguments.done o0 '{}'
        output_item.done o0 fc_1 function_call completed f "{}"
        output_item.added o1 fc_2 function_call in_progress g ""
        function_call_arguments.delta o1 '{}'
        function_call_arguments.done o1 '{}'
        output_item.done o1 fc_2 function_call completed g "{}"
        output_item.added o2 msg_1 message in_progress content[]
        content_part.added o2 c0 output_text ''
        output_text.delta o2 c0 'done'
        output_text.done o2 c0 'done'
        content_part.done o2 c0 output_text 'done'
        output_item.done o2 msg_1 message completed content['done']
        completed completed 3
        """,
    ),
    Case(
        "a call that arrives while text is open waits for its end",
        [
            START,
            *(Opened(0, "text"), Delta(0, "a"), Opened(1, "tool_call", "call_1", "f"), Delta(1, "{")),
            *(Delta(0, "b"), Closed(0), Delta(1, "}"), Closed(1), Finished("tool_calls")),
        ],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'a'
        output_text.delta o0 c0 'b'
        output_text.done o0 c0 'ab'
        content_part.done o0 c0 output_text 'ab'
        output_item.done o0 msg_1 message completed content['ab']
        output_item.added o1 fc_1 function_call in_progress f ""
        function_call_arguments.delta o1 '{'
        function_call_arguments.delta o1 '}'
        function_call_arguments.done o1 '{}'
        output_item.done o1 fc_1 function_call completed f "{}"
        completed completed 2
        """,
    ),
    Case(
        "a call without arguments gets an empty object",
        [START, *call(0), *call(1, tool="tool_search", name="tool_search"), Finished("tool_calls")],
        """
        output_item.added o0 fc_1 function_call in_progress f ""
        function_call_arguments.delta o0 '{}'
        function_call_arguments.done o0 '{}'
        output_item.done o0 fc_1 function_call completed f "{}"
        output_item.added o1 tsc_1 tool_search_call in_progress {}
        output_item.done o1 tsc_1 tool_search_call completed {}
        completed completed 2
        """,
    ),
    Case(
        "custom tool",
        [
            START,
            *call(0, "*** Begin", "\n*** End", tool="custom", name="apply_patch"),
            Finished("tool_calls"),
        ],
        """
        output_item.added o0 ctc_1 custom_tool_call in_progress apply_patch ""
        custom_tool_call_input.delta o0 '*** Begin'
        custom_tool_call_input.delta o0 '\\n*** End'
        custom_tool_call_input.done o0 '*** Begin\\n*** End'
        output_item.done o0 ctc_1 custom_tool_call completed apply_patch "*** Begin\\n*** End"
        completed completed 1
        """,
    ),
    Case(
        "custom tool without input, in a namespace",
        [START, *call(0, tool="custom", name="exec", namespace="functions"), Finished("tool_calls")],
        """
        output_item.added o0 ctc_1 custom_tool_call in_progress exec functions ""
        custom_tool_call_input.done o0 ''
        output_item.done o0 ctc_1 custom_tool_call completed exec functions ""
        completed completed 1
        """,
    ),
    Case(
        "namespace",
        [START, *call(0, "{}", name="search", namespace="mcp__docs"), Finished("tool_calls")],
        """
        output_item.added o0 fc_1 function_call in_progress search mcp__docs ""
        function_call_arguments.delta o0 '{}'
        function_call_arguments.done o0 '{}'
        output_item.done o0 fc_1 function_call completed search mcp__docs "{}"
        completed completed 1
        """,
    ),
    Case(
        "tool search has an object for arguments and no events of its own",
        [START, *call(0, '{"query"', ':"x"}', tool="tool_search"), Finished("tool_calls")],
        """
        output_item.added o0 tsc_1 tool_search_call in_progress {}
        output_item.done o0 tsc_1 tool_search_call completed {"query": "x"}
        completed completed 1
        """,
    ),
    Case(
        "tool search arguments that are no object stay what the model wrote",
        [
            START,
            *call(0, "[1]", tool="tool_search"),
            *call(1, "{", tool="tool_search"),
            Finished("tool_calls"),
        ],
        """
        output_item.added o0 tsc_1 tool_search_call in_progress {}
        output_item.done o0 tsc_1 tool_search_call completed "[1]"
        output_item.added o1 tsc_2 tool_search_call in_progress {}
        output_item.done o1 tsc_2 tool_search_call completed "{"
        completed completed 2
        """,
    ),
]

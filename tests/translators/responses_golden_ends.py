"""Golden event streams of refusals, of replies that end early or fail, and of what is rarer."""

from __future__ import annotations

from tests.translators.responses_golden import Case
from tests.translators.responses_player import START, STOP, call, text
from translators.errors import ProxyError
from translators.ir import Annotated, Closed, Delta, Failed, Finished, Foreign, Opaque, Opened, Usage

ENDS = [
    Case(
        "refusal after text, in one message",
        [
            START,
            *text(0, "Hm.", phase="final_answer"),
            *(Opened(1, "refusal", joins=True), Delta(1, "No"), Closed(1)),
            STOP,
        ],
        """
        output_item.added o0 msg_1 message in_progress final_answer content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'Hm.'
        output_text.done o0 c0 'Hm.'
        content_part.done o0 c0 output_text 'Hm.'
        content_part.added o0 c1 refusal ''
        refusal.delta o0 c1 'No'
        refusal.done o0 c1 'No'
        content_part.done o0 c1 refusal 'No'
        output_item.done o0 msg_1 message completed final_answer content['Hm.', 'No']
        completed completed 1
        """,
    ),
    Case(
        "refusal as text, for Codex",
        [START, Opened(0, "refusal"), Delta(0, "I "), Delta(0, "cannot"), Closed(0), STOP],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'I '
        output_text.delta o0 c0 'cannot'
        output_text.done o0 c0 'I cannot'
        content_part.done o0 c0 output_text 'I cannot'
        output_item.done o0 msg_1 message completed content['I cannot']
        completed completed 1
        """,
        {"refusal_as_text": True},
    ),
    Case(
        "length: the last item is incomplete",
        [
            START,
            *(Opened(0, "summary"), Delta(0, "a"), Closed(0)),
            *(Opened(1, "text"), Delta(1, "cu"), Closed(1, cut=True), Finished("length", Usage(3, 2))),
        ],
        """
        output_item.added o0 rs_1 reasoning in_progress summary[]
        reasoning_summary_part.added o0 s0 summary_text ''
        reasoning_summary_text.delta o0 s0 'a'
        reasoning_summary_text.done o0 s0 'a'
        reasoning_summary_part.done o0 s0 summary_text 'a'
        output_item.done o0 rs_1 reasoning completed summary['a']
        output_item.added o1 msg_1 message in_progress content[]
        content_part.added o1 c0 output_text ''
        output_text.delta o1 c0 'cu'
        output_text.done o1 c0 'cu'
        content_part.done o1 c0 output_text 'cu'
        output_item.done o1 msg_1 message incomplete content['cu']
        incomplete incomplete 2
        """,
    ),
    Case(
        "length inside a call: its arguments stay half",
        [
            START,
            *call(0, "{}"),
            Opened(1, "tool_call", "c", "g"),
            Delta(1, '{"a'),
            Closed(1),
            Finished("length"),
        ],
        """
        output_item.added o0 fc_1 function_call in_progress f ""
        function_call_arguments.delta o0 '{}'
        function_call_arguments.done o0 '{}'
        output_item.done o0 fc_1 function_call completed f "{}"
        output_item.added o1 fc_2 function_call in_progress g ""
        function_call_arguments.delta o1 '{"a'
        function_call_arguments.done o1 '{"a'
        output_item.done o1 fc_2 function_call incomplete g "{\\"a"
        incomplete incomplete 2
        """,
    ),
    Case(
        "failure before anything was said",
        [Failed(ProxyError("upstream", "boom"))],
        "failed failed 0",
    ),
    Case(
        "failure after text",
        [START, Opened(0, "text"), Delta(0, "par"), Failed(ProxyError("upstream", "boom"), Usage(1, 1))],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'par'
        output_text.done o0 c0 'par'
        content_part.done o0 c0 output_text 'par'
        output_item.done o0 msg_1 message incomplete content['par']
        failed failed 1
        """,
    ),
    Case(
        "failure in a call: nobody may run it, nor what waits behind it",
        [START, *call(0, "{}"), *call(1, "{}"), *text(2, "x"), Failed(ProxyError("timeout", "too slow"))],
        """
        output_item.added o0 fc_1 function_call in_progress f ""
        function_call_arguments.delta o0 '{}'
        failed failed 0
        """,
    ),
    Case(
        "a foreign item goes through its stages",
        [
            START,
            Foreign(
                0,
                Opaque(
                    "responses",
                    {
                        "id": "ws_1",
                        "type": "web_search_call",
                        "status": "completed",
                        "action": {"type": "search", "query": "cats", "queries": ["cats"]},
                    },
                ),
            ),
            *text(1, "Cats."),
            STOP,
        ],
        """
        output_item.added o0 ws_1 web_search_call in_progress
        web_search_call.in_progress o0
        web_search_call.searching o0
        web_search_call.completed o0
        output_item.done o0 ws_1 web_search_call completed
        output_item.added o1 msg_1 message in_progress content[]
        content_part.added o1 c0 output_text ''
        output_text.delta o1 c0 'Cats.'
        output_text.done o1 c0 'Cats.'
        content_part.done o1 c0 output_text 'Cats.'
        output_item.done o1 msg_1 message completed content['Cats.']
        completed completed 2
        """,
    ),
    Case(
        "foreign items wait like all others; those of the other shape have no form here",
        [
            START,
            *(Opened(0, "text"), Delta(0, "a")),
            Foreign(1, Opaque("responses", {"type": "compaction", "encrypted_content": "gAAA"})),
            Foreign(2, Opaque("chat", {"audio": {}})),
            Foreign(
                3,
                Opaque(
                    "responses",
                    {
                        "id": "mcp_1",
                        "type": "mcp_call",
                        "status": "failed",
                        "name": "n",
                        "server_label": "s",
                        "arguments": "",
                    },
                ),
            ),
            Closed(0),
            STOP,
        ],
        """
        output_item.added o0 msg_1 message in_progress content[]
        content_part.added o0 c0 output_text ''
        output_text.delta o0 c0 'a'
        output_text.done o0 c0 'a'
        content_part.done o0 c0 output_text 'a'
        output_item.done o0 msg_1 message completed content['a']
        output_item.added o1 item_1 compaction None "gAAA"
        output_item.done o1 item_1 compaction None "gAAA"
        output_item.added o2 mcp_1 mcp_call in_progress n ""
        mcp_call.in_progress o2
        output_item.done o2 mcp_1 mcp_call failed n ""
        completed completed 3
        """,
    ),
    Case(
        "annotations are numbered, before and after their part is shown",
        [
            START,
            *call(0, "{}"),
            *(Opened(1, "text"), Annotated(1, {"type": "file_citation", "file_id": "f1", "index": 3})),
            *(Delta(1, "x"), Closed(1), Finished("tool_calls")),
        ],
        """
        output_item.added o0 fc_1 function_call in_progress f ""
        function_call_arguments.delta o0 '{}'
        function_call_arguments.done o0 '{}'
        output_item.done o0 fc_1 function_call completed f "{}"
        output_item.added o1 msg_1 message in_progress content[]
        content_part.added o1 c0 output_text ''
        output_text.delta o1 c0 'x'
        output_text.annotation.added o1 c0 a0
        output_text.done o1 c0 'x'
        content_part.done o1 c0 output_text 'x'
        output_item.done o1 msg_1 message completed content['x']
        completed completed 2
        """,
    ),
]

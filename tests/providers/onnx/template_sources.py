"""Chat templates written for these tests, in the manner of each family's own."""

from __future__ import annotations

CHATML_TOOLS = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content and loop.index0 > ns.last %}
            {{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- elif not (tools and loop.first and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

STRICT_ROLES = """\
{{- bos_token }}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant') }}
    {%- endif %}
    {%- if message.role == 'user' %}{{- '[INST] ' + message.content + ' [/INST]' }}
    {%- else %}{{- ' ' + message.content + eos_token }}{%- endif %}
{%- endfor %}
"""

CHANNELS = """\
{{- "<|start|>system<|message|>Reasoning: " + (reasoning_effort or "medium") + "\\n" }}
{{- "Current date: " + strftime_now("%Y") + "<|end|>" }}
{%- for message in messages %}
    {%- if message.role == 'developer' %}{{- "<|start|>developer<|message|>" + message.content + "<|end|>" }}
    {%- elif message.role == 'assistant' %}
        {%- if message.thinking and message.content and message.tool_calls %}
            {{- raise_exception("not content and thinking beside calls") }}
        {%- endif %}
        {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
    {%- elif message.role == 'tool' %}
        {{- "<|start|>functions." + message.name + " to=assistant<|message|>" + message.content + "<|end|>" }}
    {%- else %}{{- "<|start|>user<|message|>" + message.content + "<|end|>" }}{%- endif %}
{%- endfor %}
{{- "<|start|>assistant" }}
"""

LOOPS_AND_GENERATION = """\
{%- for message in messages %}
    {%- if message.role == 'system' %}{%- continue %}{%- endif %}
    {%- if loop.index > 3 %}{%- break %}{%- endif %}
    {%- if message.role == 'assistant' %}{% generation %}A:{{ message.content }};{% endgeneration %}
    {%- else %}U:{{ message.content }};{%- endif %}
{%- endfor %}
"""

LLAMA_LIKE = """\
{{- bos_token }}
{%- if tools is not none %}
    {{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
    {%- for tool in tools %}{{- tool | tojson(indent=4) }}{{- "\\n" }}{%- endfor %}
    {{- "<|eot_id|>" }}
{%- endif %}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("one call at once") }}{%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}{{- call.arguments | tojson }}{{- "}<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim }}
        {{- '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
"""

UPPER = """\
{%- for tool in tools or [] %}
{%- for key, value in tool.function.parameters.properties.items() %}
{{- key ~ ":" ~ value.type | upper ~ "," }}
{%- endfor %}
{%- endfor %}
{%- for message in messages %}{{ message.content }}{% endfor %}
"""

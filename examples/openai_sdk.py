"""The OpenAI SDK through Dragoman: a streamed answer, then a tool that is called and answered.

Run it with MODEL=provider/model.
"""

import json
import os

from openai import OpenAI

base_url = os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:4000") + "/v1"
model = os.environ["MODEL"]
tools = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "The weather of a city",
        "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def stream_an_answer(client: OpenAI) -> None:
    with client.responses.stream(model=model, input="Say hello.") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                print(event.delta, end="", flush=True)
    print()


def use_a_tool(client: OpenAI) -> None:
    items: list = [{"type": "message", "role": "user", "content": "What is the weather in Paris?"}]
    reply = client.responses.create(model=model, input=items, tools=tools)
    for item in reply.output:
        items.append(item.to_dict())
        if item.type == "function_call":
            print(f"the model calls {item.name} for {json.loads(item.arguments)['city']}")
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": "sunny"})
    if items[-1]["type"] == "function_call_output":
        reply = client.responses.create(model=model, input=items, tools=tools)
    print(reply.output_text)


if __name__ == "__main__":
    with OpenAI(base_url=base_url, api_key=os.environ.get("DRAGOMAN_API_KEY", "none")) as client:
        stream_an_answer(client)
        use_a_tool(client)

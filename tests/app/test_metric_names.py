"""Names, labels and bounds of what `/metrics` tells, in one process and in several."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.telemetry.labels import MAX_NAMES, OTHER, Bounded
from app.telemetry.metrics import METRICS, PREFIX, Metrics
from app.telemetry.trace import Trace
from tests.app.conftest import Serve, provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

CHAT: dict[str, Any] = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
USAGE = {
    "prompt_tokens": 40,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by name and labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float | None:
    return samples(text).get(PREFIX + name, {}).get(tuple(sorted(labels.items())))


def test_names_follow_the_rules_of_prometheus() -> None:
    names = [each.name for each in METRICS]
    assert len(set(names)) == len(names)
    for each in METRICS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", each.name)
        assert not each.name.endswith(("_total", "_ms", "_count"))
        assert each.meaning.endswith(".") or each.kind == "gauge"
        assert not {"request_id", "user", "key", "path"} & set(each.labels)
        assert (each.kind == "histogram") <= each.name.endswith("_seconds")


def test_times_and_tokens_by_model(serve: Serve, scripted: ScriptedBackend) -> None:
    body = {**chat_completion("hi"), "usage": USAGE}
    scripted.play(json_reply(body), sse_reply(chat_stream("a b"), pause=0.03))
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        client.post("/v1/chat/completions", json=CHAT)
        client.post("/v1/chat/completions", json={**CHAT, "stream": True})
        while served.gateway.serving:
            time.sleep(0.005)
        text = client.get("/metrics").text
    assert value(text, "request_seconds_count", model="p/m") == 2
    assert value(text, "first_byte_seconds_count", model="p/m") == 1
    assert value(text, "request_seconds_bucket", model="p/m", le="+Inf") == 2
    assert 0.03 < (value(text, "request_seconds_sum", model="p/m") or 0) < 5
    assert value(text, "input_tokens_total", provider="p") == 51
    assert value(text, "cached_tokens_total", provider="p") == 10
    assert value(text, "reasoning_tokens_total", provider="p") == 5
    assert len(samples(text)[PREFIX + "build_info"]) == 1


def test_failures_of_backends_are_counted_by_kind(serve: Serve, scripted: ScriptedBackend) -> None:
    failing = json_reply({"error": {"message": "x"}}, 500)
    scripted.play(failing, model="m")
    served = serve(
        fresh=True,
        providers=[provider(scripted), provider(scripted, name="q", models=["n"])],
        fallbacks={"p/m": ["q/n"]},
        server={"retry_budget_s": 0},
    )
    with served.client() as client:
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        text = client.get("/metrics").text
    assert value(text, "backend_failures_total", provider="p", kind="upstream") == 1
    assert value(text, "requests_total", route="/chat/completions", lane="pass", status="200") == 1


def test_made_up_models_share_one_label(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "no", "code": "model_not_found"}}, 404))
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        for number in range(20):
            client.post("/v1/chat/completions", json={**CHAT, "model": f"p/made-up-{number}"})
        text = client.get("/metrics").text
    assert value(text, "request_seconds_count", model=OTHER) == 20
    assert "made-up" not in text


def test_a_bound_on_models_that_answer() -> None:
    bounded = Bounded()
    names = {bounded.name(f"m{number}", True) for number in range(MAX_NAMES + 50)}
    assert len(names) == MAX_NAMES + 1
    assert bounded.name("m0", False) == "m0"


def test_requests_in_flight(serve: Serve, scripted: ScriptedBackend) -> None:
    go = threading.Event()

    def answer(request: Request) -> Reply:
        go.wait(10)
        return json_reply(chat_completion("hi"))

    scripted.play(answer)
    served = serve(fresh=True, providers=[provider(scripted)])

    def ask() -> None:
        with served.client() as other:
            other.post("/v1/chat/completions", json=CHAT)

    asking = threading.Thread(target=ask)
    with served.client() as client:
        assert value(client.get("/metrics").text, "requests_in_flight") == 0
        asking.start()
        while not scripted.requests:
            time.sleep(0.01)
        assert value(client.get("/metrics").text, "requests_in_flight") == 1
        go.set()
        asking.join()
        assert value(client.get("/metrics").text, "requests_in_flight") == 0


def test_events_of_the_log_are_counted(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(
        json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "0"}), json_reply(chat_completion(""))
    )
    served = serve(fresh=True, watched=True, providers=[provider(scripted)])
    with served.client() as client:
        client.post("/v1/chat/completions", json=CHAT)
        text = client.get("/metrics").text
    assert value(text, "events_total", event="provider:retry") == 1
    assert value(text, "events_total", event="llm:response") == 2


def scrape(gateway: Gateway) -> str:
    with gateway.client() as client:
        return client.get("/metrics").text


def until(gateway: Gateway, name: str, wanted: float, **labels: str) -> float | None:
    end = time.monotonic() + 10
    while (found := value(scrape(gateway), name, **labels)) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return found


@pytest.mark.timeout(60)
def test_several_workers_tell_one_sum(tmp_path: Path, scripted: ScriptedBackend) -> None:
    go = threading.Event()

    def answer(request: Request) -> Reply:
        if request.json.get("user") == "slow":
            go.wait(20)
        return json_reply(chat_completion("hi"))

    scripted.play(answer)
    text = config_text([provider(scripted)]) + "\n[prices]\nm = {input = 1.0, output = 1.0}\n"
    with Gateway(tmp_path, text, arguments=("--workers", "2")) as gateway:

        def ask(user: str) -> None:
            with gateway.client() as client:
                client.post("/v1/chat/completions", json={**CHAT, "user": user})

        for _ in range(8):
            ask("fast")
        slow = [threading.Thread(target=ask, args=("slow",)) for _ in range(4)]
        for each in slow:
            each.start()
        assert until(gateway, "requests_in_flight", 4) == 4
        go.set()
        for each in slow:
            each.join()
        assert until(gateway, "requests_in_flight", 0) == 0
        assert until(gateway, "request_seconds_count", 12, model="p/m") == 12
        text = scrape(gateway)
        assert value(text, "cost_usd_total", model="p/m") == pytest.approx(12 * 18e-6)
        assert list(samples(text)[PREFIX + "build_info"].values()) == [1.0]
        assert "pid=" not in text


@pytest.mark.timeout(60)
def test_a_worker_that_died_answers_nothing_any_more(tmp_path: Path, scripted: ScriptedBackend) -> None:
    go = threading.Event()

    def answer(request: Request) -> Reply:
        go.wait(20)
        return json_reply(chat_completion("hi"))

    scripted.play(answer)
    with Gateway(tmp_path, config_text([provider(scripted)]), arguments=("--workers", "2")) as gateway:

        def ask() -> None:
            with gateway.client() as client:
                try:
                    client.post("/v1/chat/completions", json=CHAT)
                except Exception:
                    return

        asking = threading.Thread(target=ask)
        asking.start()
        assert until(gateway, "requests_in_flight", 1) == 1
        children = (
            Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children").read_text().split()
        )
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        assert until(gateway, "requests_in_flight", 0) == 0
        go.set()
        asking.join()


def test_what_rarely_happens_is_counted() -> None:
    counted = Metrics()
    trace = Trace(b"r1", "", target="p/m", status=200, attempts=3, continuations=2, chain_invalidated=True)
    trace.retries = trace.learned = trace.waits = 1
    counted.exchange("/responses", trace)
    text = counted.text().decode()
    for name, wanted in (
        ("continuations", 2),
        ("chains_invalidated", 1),
        ("retries", 1),
        ("rejections_learned", 1),
        ("concurrency_waits", 1),
    ):
        assert value(text, f"{name}_total", provider="p") == wanted

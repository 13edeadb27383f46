# Everything a developer or CI does. Needs Python >= 3.11, pip and make; the rest is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
MINUTES ?= 30
REQUESTS ?= 50000
CODEX := .cache/codex/node_modules/.bin/codex
REAL := .cache/real-model

.DEFAULT_GOAL := help
.PHONY: help install run test codex postgres fmt lint types cov laws fuzz soak contract bench bench-page perf docs docs-check image test-image audit real-model

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

# Stamps make a second call instant. What serving needs comes first, so that `make run` is quick.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Dragoman needs Python 3.11 or newer" >&2; exit 1; }
	@# Some distributions leave ensurepip out of venv: pip then installs pip into it from outside.
	$(PYTHON) -m venv .venv || { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

.venv/.serves: pyproject.toml | $(BIN)/python
	@# The engine of the model that answers without a key has no wheels for some systems: then without it.
	$(BIN)/python -m pip install --quiet --editable '.[onnx]' || $(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.tests: pyproject.toml .venv/.serves
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

install: .venv/.tests ## .venv with everything to run and test

run: .venv/.serves ## serve on 127.0.0.1:4000, no configuration needed; ARGS='--port 4001' and such
	@$(BIN)/dragoman serve $(ARGS)

test: lint types docs-check codex postgres cov perf ## everything that must hold, as CI runs it

codex: ## the Codex CLI for the tests, where npm is; without it they are skipped
	@if [ -x $(CODEX) ] || command -v codex >/dev/null; then :; \
	elif ! command -v npm >/dev/null; then echo "no npm here: the Codex tests are skipped" >&2; \
	else npm install --prefix .cache/codex --no-audit --no-fund --loglevel=error '@openai/codex@>=0.171.0' >/dev/null \
	  || echo "the Codex CLI could not be installed: its tests are skipped" >&2; fi

postgres: ## the PostgreSQL server for the tests, where apt-get may install it; without it they are skipped
	@sh scripts/postgres.sh || echo "its tests are skipped" >&2

fmt: install ## format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix --quiet .

lint: install ## style, spelling
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/codespell

types: install ## mypy, strict
	$(BIN)/mypy

cov: install ## the tests, with the coverage gates
	rm -f .coverage .coverage.*
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --include='translators/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

laws: install ## the laws with many more examples
	HYPOTHESIS_PROFILE=ci $(BIN)/pytest tests/laws -n 2

fuzz: install ## requests made from the OpenAPI document, with many more examples
	DRAGOMAN_FUZZ_EXAMPLES=300 $(BIN)/pytest tests/app/openapi -k fuzz -n 2 --timeout 3600

soak: install ## good and broken exchanges for MINUTES=30 or more, 50,000 at least; fails on a leak
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --requests $(REQUESTS)

contract: install ## real clients and real backends through a real process
	$(BIN)/pytest tests/contract tests/test_examples.py

bench: install ## costs beside nginx, a bare relay and other gateways, with the targets; minutes
	$(BIN)/python -m bench $(ARGS)

bench-page: install ## the same, written into docs/performance.md
	$(BIN)/python -m bench --write docs/performance.md $(ARGS)

perf: install ## no change makes a request dearer: ratios to a bare relay
	$(BIN)/python -m bench.guard

docs: install ## regenerate the generated pages
	$(BIN)/python -m docs.generate

docs-check: install ## fail when a generated page is not what the code says
	$(BIN)/python -m docs.generate --check

real-model: $(REAL)/minilm/tokenizer.json $(REAL)/smollm2-135m/genai_config.json ## real local models for tests that are skipped without; GBs of tools

$(REAL)/minilm/tokenizer.json: .venv/.serves
	$(BIN)/python -m scripts.real_model.fetch $(REAL)/minilm

$(REAL)/smollm2-135m/genai_config.json:
	$(PYTHON) -m venv $(REAL)/tools
	$(REAL)/tools/bin/python -m pip install --quiet torch==2.13.0 transformers==5.24.0 accelerate gguf==0.19.0 \
		onnx==1.23.2 onnx-ir==1.1.0 onnxscript onnxruntime-genai==0.18.0
	$(REAL)/tools/bin/python -m scripts.real_model.build $(REAL)/smollm2-135m
	rm -rf $(REAL)/tools

audit: install ## known vulnerabilities of what is installed; ARGS=--require fails where they cannot be looked up
	@test -x .cache/audit/bin/pip-audit || { $(PYTHON) -m venv .cache/audit && \
	  .cache/audit/bin/python -m pip install --quiet pip-audit; } || true
	@$(BIN)/python scripts/audit.py .cache/audit/bin/pip-audit $(ARGS)

image: ## container image; EXTRAS=onnx,databricks,images for optional parts
	docker build --build-arg EXTRAS='$(EXTRAS)' -t dragoman .

test-image: install ## the image's steps and what they leave, without an engine; Linux, as root, minutes
	DRAGOMAN_TEST_IMAGE=1 $(BIN)/pytest tests/deploy

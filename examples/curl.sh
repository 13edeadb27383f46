#!/usr/bin/env bash
# Both shapes from a shell. Usage: MODEL=provider/model examples/curl.sh
# Where the gateway asks for a key, DRAGOMAN_API_KEY holds it.
set -euo pipefail
base=${DRAGOMAN_URL:-http://127.0.0.1:4000}/v1
model=${MODEL:?name a model, as GET /v1/models lists them}
ask() {
  curl --silent --show-error --fail-with-body --no-buffer -H 'content-type: application/json' \
    -H "authorization: Bearer ${DRAGOMAN_API_KEY:-none}" "$@"
  echo
}

echo "# what there is"
ask "$base/models"

echo "# Responses, streamed"
ask "$base/responses" -d '{"model": "'"$model"'", "input": "Say hello.", "stream": true}'

echo "# Chat Completions, whole; -D shows the headers: what answered, what was left out"
ask "$base/chat/completions" -D - -d '{"model": "'"$model"'", "messages": [{"role": "user", "content": "Say hello."}]}'

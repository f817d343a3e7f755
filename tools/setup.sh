#!/bin/sh
# Make .venv and install into it: `setup.sh PYTHON serve` the package with its server, `setup.sh PYTHON dev` the
# development tools beside it. A stamp file per set lets make skip what is done.
set -eu
python=$1
set=$2

say() { printf '%s\n' "$*" >&2; }

if [ -z "$python" ]; then
  say 'Pointsman needs Python 3.11 or newer, and none was found. Install one, or name it: make PYTHON=/path/to/python3.12 …'
  exit 1
fi

make_venv() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null && "$python" -m venv --clear .venv && return
  # Debian keeps venv in a package of its own.
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say 'This Python comes without venv; installing python3-venv…'
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y python3-venv; } >/dev/null 2>&1 || true
    "$python" -m venv --clear .venv && return
  fi
  say "$python has no venv module. On Debian and Ubuntu: apt-get install python3-venv"
  exit 1
}

install() {
  # pip is quiet when all goes well; its own words are shown only when it fails.
  log=.venv/pip.log
  if ! .venv/bin/python -m pip install --disable-pip-version-check --no-input -q "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    exit 1
  fi
}

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  make_venv
fi

case $set in
  serve)
    say 'Setting up .venv (once)…'
    install -e '.[serve]'
    ;;
  dev)
    say 'Installing the development tools (once)…'
    # Older pips do not know dependency groups, so the group is read here and given by name.
    tools=$(.venv/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")')
    IFS='
'
    # shellcheck disable=SC2086
    install $tools
    ;;
esac
touch ".venv/.$set"

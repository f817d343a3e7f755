#!/bin/sh
# Put the peers that `make bench-peers` measures into .venv/peers, a virtual environment of their own. oban needs Python
# 3.12; where there is none (PEERS_PYTHON names one), it is left out and said so. One that does not install is left out too.
set -eu
folder=.venv/peers
python=.venv/bin/python
for each in ${PEERS_PYTHON:-} python3.14 python3.13 python3.12; do
  if "$each" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
    python=$each
    break
  fi
done

"$python" -m venv --clear "$folder"
for peer in asyncpg 'psycopg[binary,pool]' 'pgqueuer==1.6.*' 'procrastinate==3.10.*' 'dbos==3.4.*' 'oban==0.7.*' 'huey==3.5.*'; do
  "$folder/bin/python" -m pip install --disable-pip-version-check --no-input -q "$peer" >>"$folder/install.log" 2>&1 </dev/null ||
    echo "NOT INSTALLED: $peer (see $folder/install.log)" >&2
done
touch .venv/.peers

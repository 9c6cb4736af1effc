#!/bin/sh
# Installs Lexveil and what it needs from a checkout: the container file runs it, and so can any host.
#   install.sh SOURCE PREFIX      SOURCE: the checkout; PREFIX: a virtual environment that is made or brought up to date
# The versions are those that the checkout pins. Python 3.11 to 3.13 and uv (`pip install uv`) must be there.
set -eu
source=$1 prefix=$2
command -v uv > /dev/null || { echo "install.sh: uv is missing: pip install uv" >&2; exit 2; }
[ -f "$source/pyproject.toml" ] || { echo "install.sh: $source is no checkout of Lexveil" >&2; exit 2; }
UV_PROJECT_ENVIRONMENT=$prefix uv sync --quiet --project "$source" --no-dev --no-editable \
    --extra graph --extra service --extra databases
"$prefix/bin/lexveil" --version

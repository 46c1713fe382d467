# Sourced by the scripts beside it: interpreters, and environments of the versions in constraints/.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export JAX_PLATFORMS=cpu PIP_DISABLE_PIP_VERSION_CHECK=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find_python() { # an interpreter of that version that really starts
  local candidate
  for candidate in "python$1" "${HOME:-}/.pyenv/versions/$1".*/bin/python /usr/bin/python"$1"; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
      echo "$candidate"
      return
    fi
  done
}

# enter NAME PYTHON VERSIONS: a new environment, in which pip takes the versions of constraints/VERSIONS.txt,
# those of what builds the package included
enter() {
  echo "== $1"
  "$2" -m venv "$work/$1"
  source "$work/$1/bin/activate"
  cp ".ci/constraints/$3.txt" "$work/"
  export PIP_CONSTRAINT="$work/$3.txt" # pip splits it at blanks, which the checkout's path may have
  export PIP_BUILD_CONSTRAINT="$PIP_CONSTRAINT" # of later versions of pip, which do not use the other to build
  export NUMPYRO_RANKINGS_TEST_CACHE="$work/cache-$3"
  mkdir -p "$NUMPYRO_RANKINGS_TEST_CACHE"
}

check_versions() { # whether what is installed has the versions of the environment, and nothing was forgotten there
  local others
  others=$(pip freeze --exclude numpyro-rankings | grep -vxF -f "$PIP_CONSTRAINT" || true)
  [ -z "$others" ] || { echo "not in $(basename "$PIP_CONSTRAINT"), see .ci/constraints/make:" $others && return 1; }
}

python=$(find_python 3.11)
[ -n "$python" ] || { echo "Python 3.11 is needed" && exit 1; }
newest_python=$(find_python 3.13)

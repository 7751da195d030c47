# What `.ci/run` and `.ci/release` share: phases with their times, the table, preparing a machine. Sourced, never run.
# shellcheck shell=bash
#
# Nothing is left out in silence: CI=true turns a test or a kind of crash that cannot run here into a failure.
# Only the database of advisories may be out of reach, and a machine may be one that clusters with nodes cannot run on.
# The last lines then say so. ADVISORIES=required and NODES=required forbid that too.
#
# Needed beforehand: rustup with network to a crate registry, and Go 1.21 or newer (it fetches the version that
# go.mod names by itself). What comes from Debian is installed here when the user is root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

# The release whose checks deny.toml is written for.
readonly CARGO_DENY_VERSION=0.20.2
readonly CARGO_FUZZ_VERSION=0.13.2
# Longest wait for the advisory database, which a closed network does not reach.
readonly ADVISORIES_WAIT=60s

# What cannot run fails: tests without their cluster, crashes without the right to mount.
export CI=true
# "required": advisories must be checked. "if-reachable": a closed network is said in the end.
readonly ADVISORIES=${ADVISORIES:-if-reachable}
# "required": clusters with nodes must run. "if-possible": a machine that cannot have them is said in the end.
readonly NODES=${NODES:-if-possible}

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_TERM_PROGRESS_WHEN=never
export CARGO_NET_RETRY=5
# Nothing is built a second time here, and what makes that quick takes its time the first time.
export CARGO_INCREMENTAL=0
# Clippy compiles the workspace, so that one build gives both the lints and the programs. A warning fails the build.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver
export CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
# For `env`: builds without Clippy. What it compiles is hardly optimised by rustc, so that optimised builds take LLVM
# twice as long.
readonly PLAIN=(-u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS)

readonly TOOLS=$PWD/target/tools
# Tools that are built once for a machine's user, whatever the checkout.
readonly KEPT=${XDG_CACHE_HOME:-$HOME/.cache}/tributary
readonly OUTPUT=target/ci-output.txt
readonly TEST_OUTPUT=target/ci-tests.txt
readonly TIMES=target/ci-times.txt
# Where phases that run beside the others print to, and the pipe that tells of each one's end.
readonly BESIDE=target/ci-beside

# One line for each phase that ended: name, wall and processor seconds.
phases=()
unchecked=()
current=""
began=$SECONDS
began_cpu=0
# The process whose phases run beside the others, while it runs, and the pipe that tells of them.
beside=""
news=""
# Why this machine can have no nodes; empty if it can.
why_not=""

# Everything that is printed is kept too, so that the end of a phase that failed can be told again below the table: who
# is shown only the last lines of a run sees why it failed. Ctrl-C is for the gate, which still prints its table.
mkdir -p target
: >"$OUTPUT"
exec > >(exec tee -i "$OUTPUT") 2>&1
readonly KEEPER=$!
# How many lines of it.
readonly LAST_LINES=50

# cpu_of FILE: whole processor seconds of what `times` wrote to a file: of the shell and of all it has waited for.
# `times` is called by the shell itself, since a subshell has waited for nothing.
cpu_of() {
  awk '{ for (field = 1; field <= NF; field++) { split($field, part, /[ms]/); sum += part[1] * 60 + part[2] } }
       END { printf "%d\n", sum }' "$1"
}

# What a phase printed last. All of it is in the file when the line that this prints to the output is there.
last_lines() {
  local mark="=== the end of: $1"
  printf '\n%s\n' "$mark"
  for _ in {1..50}; do
    if tail -n 1 "$OUTPUT" | grep -qxF -- "$mark"; then break; fi
    sleep 0.1
  done
  said=$(grep -vxF -- "$mark" "$OUTPUT" | tail -n "$LAST_LINES")
}

note_phase() {
  local cpu
  times >"$TIMES"
  cpu=$(cpu_of "$TIMES")
  phases+=("$(printf '%-28s %6d s %8d s' "$current" $((SECONDS - began)) $((cpu - began_cpu)))")
}

# Prints the table however the run ends; a failure names its phase last.
finish() {
  local status=$?
  if [ -n "$beside" ]; then
    kill -- "-$beside" 2>/dev/null || true
  fi
  local said=""
  if [ -n "$current" ]; then
    note_phase
    last_lines "$current"
  fi
  times >"$TIMES"
  printf '\n%-28s %8s %10s\n' phase wall processor
  printf '%s\n' ${phases[@]+"${phases[@]}"}
  printf '%-28s %6d s %8d s\n' total "$SECONDS" "$(cpu_of "$TIMES")"
  if [ ${#unchecked[@]} -gt 0 ]; then
    printf '\n'
    printf 'NOT CHECKED: %s\n' "${unchecked[@]}"
  fi
  if [ "$status" -ne 0 ]; then
    printf '\nFAILED in: %s (exit code %d)\n' "${current:-the table}" "$status"
    if [ -n "$said" ]; then printf 'It ended with\n%s\n' "$said"; fi
  fi
  # What is still in the pipe must be out before this ends.
  exec >&- 2>&-
  for _ in {1..50}; do
    kill -0 "$KEEPER" 2>/dev/null || break
    sleep 0.1
  done
  exit "$status"
}
trap finish EXIT

# phase NAME COMMAND...: runs a command and notes its wall and processor seconds.
# Never used in a condition, so that `set -e` holds inside the functions it calls.
phase() {
  current=$1
  began=$SECONDS
  times >"$TIMES"
  began_cpu=$(cpu_of "$TIMES")
  shift
  printf '\n=== %s\n' "$current"
  "$@"
  note_phase
  current=""
}

missing() {
  printf 'missing: %s\n' "$1" >&2
  exit 1
}

prepare_machine() {
  case $ADVISORIES in
    required | if-reachable) ;;
    *) missing "a value of ADVISORIES that is known: required, or if-reachable" ;;
  esac
  case $NODES in
    required | if-possible) ;;
    *) missing "a value of NODES that is known: required, or if-possible" ;;
  esac
  local packages=()
  command -v cc >/dev/null || packages+=(build-essential)
  command -v git >/dev/null || packages+=(git)
  command -v strace >/dev/null || packages+=(strace)
  type -P kill >/dev/null || packages+=(procps)
  type -P nsenter >/dev/null && type -P mount >/dev/null || packages+=(util-linux mount)
  if [ ${#packages[@]} -gt 0 ]; then
    [ "$(id -u)" -eq 0 ] || missing "${packages[*]}; install them, or run this as root"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
  fi
  command -v cargo >/dev/null || missing "Rust: install rustup (https://rustup.rs); rust-toolchain.toml names the toolchain"
  command -v go >/dev/null || missing "Go: install Go 1.26 (https://go.dev/dl/)"
  # The toolchain and its components as rust-toolchain.toml names them.
  cargo fmt --version >/dev/null || rustup toolchain install
  cargo --version
  cargo clippy --version
  go version
  strace -V | head -1
  git log -1 --format='commit %h %s'
  nproc | sed 's/$/ cores/'
}

# What nodes need of Debian; a machine that cannot have nodes at all is noted, or fails where they are required.
prepare_nodes() {
  local packages said
  said=$(mktemp)
  if ! packages=$(cargo nodes host 2>"$said"); then
    why_not=$(sed -n '/^Error: /{s///p;q}' "$said")
    if [ "$NODES" = required ] || [ -z "$why_not" ]; then
      cat "$said" >&2
      return 1
    fi
    unchecked+=("clusters with nodes: $why_not")
    return
  fi
  # The compiler of images comes by pip.
  python3 -m pip --version >/dev/null 2>&1 || packages+=" python3-pip"
  if [ -n "$packages" ]; then
    apt-get update -qq
    # shellcheck disable=SC2086 # words, each a package
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
  fi
}

# on_nodes COMMAND...: a step that only a machine with nodes can take.
on_nodes() {
  if [ -n "$why_not" ]; then
    echo "not here: $why_not"
    return
  fi
  "$@"
}

# unpack_package NAME: Debian's package, unpacked among the tools, so that it takes no other program's place.
unpack_package() {
  local name=$1 place=$TOOLS/$1 package
  if [ ! -d "$place" ]; then
    package=$(mktemp -d)
    if ! apt-cache show "$name" >/dev/null 2>&1; then
      apt-get update -qq # a fresh machine has no list of packages
    fi
    (cd "$package" && apt-get download -qq "$name")
    mkdir -p "$TOOLS"
    dpkg-deb --extract "$package/$name"_*.deb "$place.unpacked"
    mv "$place.unpacked" "$place"
    rm -r "$package"
  fi
}

# The kubectl of 2020, and promtool.
unpack_packages() {
  unpack_package kubernetes-client
  "$TOOLS/kubernetes-client/usr/bin/kubectl" version --client --short
  unpack_package prometheus
  "$TOOLS/prometheus/usr/bin/promtool" --version
}

# The largest of Go's programs, beside Rust's build, if this machine has never built it. What it compiles lies in Go's
# own cache, where `build_go_programs` finds it.
warm_go() {
  if compgen -G "$KEPT/go/control-plane-*" >/dev/null; then
    return
  fi
  cd e2e/control-plane
  GOWORK=off CGO_ENABLED=0 nice -n 19 go build -trimpath -buildvcs=false -o /dev/null . k8s.io/kubernetes/cmd/kubectl
}

# Go's programs that the tests need. Each is found again if it was built before, in whatever checkout.
build_go_programs() {
  local program
  for program in build grpcurl kubectl helm lua cluster-api; do
    cargo control-plane "$program"
  done
}

install_cargo_deny() {
  if [ -x "$KEPT/bin/cargo-deny" ] && [ "$("$KEPT/bin/cargo-deny" --version)" = "cargo-deny $CARGO_DENY_VERSION" ]; then
    return
  fi
  # Unoptimised and without what a debugger reads: it runs for seconds and builds in a third of the time.
  env "${PLAIN[@]}" CARGO_PROFILE_DEV_DEBUG=false \
    cargo install --quiet --debug --locked "cargo-deny@$CARGO_DENY_VERSION" --root "$KEPT"
}

check_dependencies() {
  "$KEPT/bin/cargo-deny" --log-level error check bans licenses sources
  if timeout "$ADVISORIES_WAIT" "$KEPT/bin/cargo-deny" --log-level off fetch db; then
    "$KEPT/bin/cargo-deny" check --disable-fetch advisories
  elif [ "$ADVISORIES" = required ]; then
    echo "advisories: their database could not be fetched within $ADVISORIES_WAIT, and ADVISORIES=required" >&2
    return 1
  else
    unchecked+=("known vulnerabilities of dependencies: the advisory database could not be fetched from here")
  fi
}

# Programs, tests and simulations, and their lints.
build_and_lint() {
  cargo test --locked --workspace --tests --no-run
}

run_tests() {
  # API servers are started by the dozen: with a larger heap they start with a fifth less of the processor.
  if ! GOGC=400 cargo test --locked --workspace --tests --no-fail-fast 2>&1 | tee "$TEST_OUTPUT"; then
    printf '\n=== tests that failed, and why\n'
    # Where a test ends, another one's line may follow; the reasons stand below `failures:`.
    grep -hE ' \.\.\. FAILED|panicked at' "$TEST_OUTPUT" | cut -c 1-200 | head -n 10
    awk '/^failures:$/ { section = 1 } /^test result:/ { section = 0 } section' "$TEST_OUTPUT" | cut -c 1-600 | head -n 35
    return 1
  fi
}

# begin_beside FUNCTION: runs a function, which calls `beside` for each of its phases, beside the phases that follow.
begin_beside() {
  rm -rf "$BESIDE"
  mkdir "$BESIDE"
  mkfifo "$BESIDE/news"
  # A process group of its own, so that all of it ends with the gate.
  set -m
  (
    exec >"$BESIDE/news"
    renice -n 19 -p "$BASHPID" >/dev/null
    "$1"
  ) &
  beside=$!
  set +m
  exec {news}<"$BESIDE/news"
}

# beside NAME COMMAND...: a phase that runs so, at the lowest priority.
beside() {
  local name=$1 from=$SECONDS cpu
  shift
  times >"$BESIDE/times"
  cpu=$(cpu_of "$BESIDE/times")
  "$@" >"$BESIDE/$name.txt" 2>&1
  times >"$BESIDE/times"
  printf '%d %d %s\n' $((SECONDS - from)) $(($(cpu_of "$BESIDE/times") - cpu)) "$name"
}

# joined NAME: waits for the end of such a phase, in the order in which they run. `all` of them in the end.
joined() {
  local wall cpu name
  current=$1
  began=$SECONDS
  if [ "$current" = all ]; then
    wait "$beside"
    beside=""
    exec {news}<&-
    current=""
    return
  fi
  times >"$TIMES"
  began_cpu=$(cpu_of "$TIMES")
  printf '\n=== %s\n' "$current"
  if ! read -r -u "$news" wall cpu name || [ "$name" != "$current" ]; then
    cat "$BESIDE/$current.txt"
    return 1
  fi
  cat "$BESIDE/$current.txt"
  phases+=("$(printf '%-28s %6d s %8d s  beside others; waited for %d s' "$name" "$wall" "$cpu" $((SECONDS - began)))")
  current=""
}

# One line in the end says how much ran, that it was not nothing, and that nothing was skipped.
count_tests() {
  awk '/ \.\.\. ignored/ { print "skipped: " $0 }
       /^test result:/ { passed += $4; failed += $6; ignored += $8 }
       END { printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored
             exit !(passed > 0 && failed == 0 && ignored == 0) }' \
    "$TEST_OUTPUT"
}

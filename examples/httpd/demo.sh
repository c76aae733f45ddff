#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh [BUILD] - checks the file server with curl, then loads it with wrk.
#
# Shows	that the server answers correctly, and how fast it is while ten
#	thousand other connections stay open.
# Run	./run demo, which builds BUILD (default: build) first
# Needs	curl, wrk, python3, and 1 GiB free in BUILD for the files it serves
#
# Status 0 if every check passes, 1 if one fails.  The script ends the server,
# and removes its files, on every way out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="${1:-$here/../../build}"

IDLE_CONNECTIONS=10000
# Descriptors of the server beside those of the idle connections: 256
# connections from wrk, a file for each, and the runtime's own.
SPARE_DESCRIPTORS=600

idle=0
dir=
server_pid=
load_pid=
url=
failed=0

die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# --- Starting and stopping --------------------------------------------------

stop() {
	local pid

	for pid in $load_pid $server_pid; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ -z "$dir" ] || rm -rf "$dir"
}

# The server and the client need a descriptor for each idle connection.  A user
# whose hard limit is lower gets fewer idle connections.
raise_limit() {
	local most

	ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
	idle="$IDLE_CONNECTIONS"
	most="$(ulimit -n)"
	[ "$most" != unlimited ] || return 0
	most=$((most - SPARE_DESCRIPTORS))
	[ "$most" -gt 0 ] || die "the limit of descriptors is $(ulimit -n)"
	[ "$most" -ge "$idle" ] || idle="$most"
}

make_files() {
	local site="$dir/site"

	mkdir -p "$site/files"
	printf '<!doctype html><title>weft</title><p>It works.\n' \
		>"$site/index.html"
	printf 'secret\n' >"$dir/secret"
	head -c 1K /dev/urandom >"$site/files/1k"
	head -c 1M /dev/urandom >"$site/files/1m"
	head -c 1G /dev/urandom >"$site/files/1g"
	head -c 100 "$site/files/1k" >"$dir/range"
}

start_server() {
	local line tries

	"$build/examples/httpd" "$dir/site" 127.0.0.1:0 >"$dir/out" &
	server_pid=$!
	for ((tries = 0; tries < 100; tries++)); do
		line="$(grep -m 1 'listening on' "$dir/out" || true)"
		[ -z "$line" ] || break
		kill -0 "$server_pid" 2>/dev/null || die 'httpd has ended'
		sleep 0.1
	done
	[ -n "$line" ] || die 'httpd does not listen'
	url="http://${line#*listening on }"
	printf 'httpd serves at %s\n' "$url"
}

# --- Checks -----------------------------------------------------------------

# check NAME COMMAND ...: runs the command and prints whether it succeeded.
check() {
	local name="$1"

	shift
	if "$@"; then
		printf '  ok      %s\n' "$name"
	else
		printf '  FAILED  %s\n' "$name"
		failed=$((failed + 1))
	fi
}

# has_status CODE PATH [curl options]: the response has this status.
has_status() {
	local code="$1" path="$2"

	shift 2
	[ "$(curl -s -m 20 --path-as-is -o /dev/null -w '%{http_code}' "$@" \
		"$url$path")" = "$code" ]
}

# has_body PATH FILE [curl options]: the response's body is that file.
has_body() {
	local path="$1" file="$2"

	shift 2
	curl -s -m 120 "$@" "$url$path" | cmp -s - "$file"
}

# is_refused PATH: the response is not a 200, and does not hold the secret.
is_refused() {
	local body

	body="$(curl -s -m 20 --path-as-is "$url$1")" &&
		! grep -q secret <<<"$body" && ! has_status 200 "$1"
}

run_checks() {
	local files="$dir/site/files"

	check 'GET / returns index.html' has_body / "$dir/site/index.html"
	check 'GET returns the 1 KiB file' has_body /files/1k "$files/1k"
	check 'GET returns the 1 MiB file' has_body /files/1m "$files/1m"
	check 'GET returns the 1 GiB file' has_body /files/1g "$files/1g"
	check 'HEAD returns 200' has_status 200 /files/1m -I
	check 'a range returns 206' has_status 206 /files/1k -r 0-99
	check 'a range returns the requested bytes' \
		has_body /files/1k "$dir/range" -r 0-99
	check 'a range past the end returns 416' \
		has_status 416 /files/1k -r 4096-
	check 'a missing file returns 404' has_status 404 /files/none
	check 'DELETE returns 405' has_status 405 /files/1k -X DELETE
	check '/../secret is refused' is_refused /../secret
	check '/%2e%2e/secret is refused' is_refused /%2e%2e/secret
	check 'a directory is listed' has_status 200 /files/
}

# --- Load -------------------------------------------------------------------

# Runs wrk while idle connections stay open.  The load runs in the background,
# so that a signal ends the script before the load has ended.  wrk counts a
# response that is slower than its timeout as an error.  Its default of 2 s is
# too short for a busy machine, and these checks are not about latency.
load() {
	local status=0

	python3 "$here/idle_connections.py" "${url#http://}" "$idle" \
		/files/1k -- wrk -t2 -c256 -d10s --timeout 10s \
		--latency "$url/files/1k" >"$dir/load" &
	load_pid=$!
	wait "$load_pid" || status=$?
	load_pid=
	return "$status"
}

load_lacks() {
	! grep -q "$1" "$dir/load"
}

run_load() {
	check "$idle idle connections stay open during the load" load
	cat "$dir/load"
	check 'wrk got responses' grep -q '^Requests/sec' "$dir/load"
	check 'wrk reports no socket errors' load_lacks 'Socket errors'
	check 'every response is a 200' load_lacks 'Non-2xx'
}

report() {
	local out="$dir/load"

	printf '\n%s requests a second, median latency %s, 99%% within %s; ' \
		"$(awk '/^Requests\/sec/ { print $2 }' "$out")" \
		"$(awk '$1 == "50%" { print $2 }' "$out")" \
		"$(awk '$1 == "99%" { print $2 }' "$out")"
	printf 'peak memory of httpd %s KiB\n' \
		"$(awk '/^VmHWM/ { print $2 }' "/proc/$server_pid/status")"
	[ "$failed" -eq 0 ] || die "$failed checks FAILED"
	printf 'demo: all checks passed\n'
}

raise_limit
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
dir="$(mktemp -d "$build/demo.XXXXXX")"
make_files
start_server
run_checks
run_load
report

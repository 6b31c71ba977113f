#!/bin/sh
# Reloads models of a running server while wrk asks it: every 100 ms a model's file is replaced, one time in ten by a broken text. No request may fail by
# a reload. `reload.sh [SECONDS]`, by default 20. Prints wrk's result without and with reloads, and the server's memory before, in the middle and after.
# Needs wrk.
set -eu
seconds=${1:-20}
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/target}
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --bins --examples

folder=$(mktemp -d)
server=
writer=
end() {
    [ -z "$writer" ] || kill "$writer" 2>/dev/null || true
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT INT TERM

mkdir "$folder/models"
text() { printf 'input x: f64\ninput y: f64? = 1.0\noutput z = x * 2.0 + y * 0.5\noutput version = %s\n' "$1"; }
text 0 >"$folder/models/score.cem"
"$target/release/cembra-serve" "$folder/models" --listen 127.0.0.1:8083 2>"$folder/log" &
server=$!
tries=0
until curl -sf -o /dev/null "http://127.0.0.1:8083/readyz"; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { cat "$folder/log" >&2; exit 1; }
    sleep 0.05
done

cat >"$folder/post.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"x": 3.0}'

-- The functions of this script run in each thread; wrk reads a thread's globals by `thread:get`.
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() wrong = 0 end
function response(status, headers, body)
    if status ~= 200 or not body:find('"z":6.5', 1, true) then wrong = wrong + 1 end
end

function done(summary, latency)
    local errors, wrong = summary.errors, 0
    for _, thread in ipairs(threads) do wrong = wrong + thread:get("wrong") end
    local lost = errors.connect + errors.read + errors.write + errors.timeout
    io.write(string.format("%d requests, %d wrong, %d lost, p50 %.0f us, p99 %.0f us, p99.9 %.0f us\n",
        summary.requests, wrong, lost, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
    if wrong + lost > 0 then os.exit(1) end
end
LUA
memory() { awk '/^VmRSS/ { print $2 " kB" }' "/proc/$server/status"; }
ask() { wrk -t1 -c16 -d"${1}s" -s "$folder/post.lua" "http://127.0.0.1:8083/v1/models/score" | tail -n 1 | tee "$folder/result"; grep -q ' 0 wrong, 0 lost' "$folder/result"; }

printf 'without reloads: '
ask "$((seconds < 20 ? seconds : 20))"
printf 'memory before: %s\n' "$(memory)"
(
    version=0
    while :; do
        version=$((version + 1))
        if [ $((version % 10)) = 0 ]; then printf 'output z = x *' >"$folder/next"; else text "$version" >"$folder/next"; fi
        mv "$folder/next" "$folder/models/score.cem"
        sleep 0.1
    done
) &
writer=$!
printf 'with reloads: '
ask "$((seconds / 2))"
printf 'memory in the middle: %s\n' "$(memory)"
printf 'with reloads: '
ask "$((seconds / 2))"
printf 'memory after: %s\n' "$(memory)"
curl -s "http://127.0.0.1:8083/metrics" | grep '^cembra_.*reload' | tail -n 6

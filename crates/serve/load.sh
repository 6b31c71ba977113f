#!/bin/sh
# Compares the requests per second of cembra-serve with those of a bare handler of axum (examples/bare.rs): one row of JSON, the server on one core and
# wrk on another, in turns. `load.sh [SECONDS] [TURNS]`, by default three turns of 20 seconds. Needs wrk (`apt-get install -y wrk`) and two cores.
set -eu
seconds=${1:-20}
turns=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
models=$here/../../docs/examples/service/models
target=${CARGO_TARGET_DIR:-$here/target}
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --bins --examples

folder=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT INT TERM

cat >"$folder/post.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"amount": 900, "currency": "CHF", "country": "FR", "card_country": "CH", "account_days": 400, "failures": 2}'

local failed = 0
function response(status)
    if status ~= 200 then failed = failed + 1 end
end

function done(summary, latency)
    local errors = summary.errors
    local bad = errors.connect + errors.read + errors.write + errors.timeout + errors.status
    io.write(string.format("%.0f requests/s, p50 %.0f us, p99 %.0f us, p99.9 %.0f us, %d failed\n",
        summary.requests / (summary.duration / 1e6), latency:percentile(50), latency:percentile(99), latency:percentile(99.9), bad))
end
LUA

# Runs a server on the first core, and wrk on the second: run NAME PORT COMMAND...
run() {
    name=$1 port=$2
    shift 2
    taskset -c 0 "$@" 2>"$folder/log" &
    server=$!
    body='{"amount": 900, "currency": "CHF", "country": "FR", "card_country": "CH"}'
    tries=0
    until curl -sf -o /dev/null -H 'Content-Type: application/json' -d "$body" "http://127.0.0.1:$port/v1/models/fraud"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { cat "$folder/log" >&2; exit 1; }
        sleep 0.05
    done
    printf '%s: ' "$name"
    taskset -c 1 wrk -t1 -c32 -d"${seconds}s" -s "$folder/post.lua" "http://127.0.0.1:$port/v1/models/fraud" | tail -n 1
    if [ "$name" = cembra-serve ]; then
        # The part of the model: the mean, and the bounds of p50, p99 and p99.9 in the histogram.
        curl -s "http://127.0.0.1:$port/metrics" | awk '
            /^cembra_model_seconds_sum\{model="fraud"/ { sum = $2 }
            /^cembra_model_seconds_count\{model="fraud"/ { count = $2 }
            /^cembra_model_seconds_bucket\{le="[0-9.e-]+",model="fraud"/ {
                split($1, parts, "\""); bound[++n] = parts[2]; below[n] = $2
            }
            END {
                printf "  of that the model: mean %.1f us", sum / count * 1e6
                split("0.5 0.99 0.999", shares, " ")
                for (s = 1; s <= 3; s++) for (i = 1; i <= n; i++) if (below[i] >= shares[s] * count) {
                    printf ", p%s at most %.0f us", shares[s] * 100, bound[i] * 1e6
                    break
                }
                print ""
            }'
    fi
    kill "$server"
    wait "$server" || true
    server=
}

turn=1
while [ "$turn" -le "$turns" ]; do
    run bare 8081 "$target/release/examples/bare" 127.0.0.1:8081
    run cembra-serve 8082 "$target/release/cembra-serve" "$models" --listen 127.0.0.1:8082
    turn=$((turn + 1))
done

#!/usr/bin/env bash
# How many requests a second does `holdfast proxy` answer from its cache, beside nginx's proxy_cache and Varnish in the same run?
#
#     Benchmarks/proxy.sh [--quick] [--seconds N] [--json] [--help]
#
# One hot object of 1 KiB, 64 keep-alive connections of `wrk`, one server after the other, each held to one core by taskset; wrk and
# the origin have the other cores. So requests per CPU second is the figure to compare, and requests/s is what one core gives with the
# client beside it. 30 s each, 5 s with --quick. Linux; needs wrk, curl, python3 and taskset. nginx and varnish that are not there are rows without figures, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: Benchmarks/proxy.sh [--quick] [--seconds N] [--json]

Measures how many requests `holdfast proxy` answers from its cache, beside nginx's proxy_cache and Varnish in the same run: one hot
object of 1 KiB, 64 keep-alive connections of wrk, each server held to one core.

  --quick   5 seconds a server in place of 30; ends within 45 seconds, apart from the first build
  --seconds N
            so many seconds a server
  --json    one JSON object in place of the table; a peer that is absent has the value null, and `skipped` has the reason
  --help    this text

HOLDFAST=PATH names a `holdfast` that is built already (swift build -c release --traits Tool --product holdfast).
Exit status: 0, 1 when a tool is missing or a server does not answer, 64 for bad arguments.
TEXT
}

seconds=30 json=no
while [ $# -gt 0 ]; do
    case "$1" in
    --quick) seconds=5 ;;
    --seconds)
        shift
        case "${1:-}" in
        [1-9] | [1-9][0-9] | [1-9][0-9][0-9]) seconds="$1" ;;
        *) printf 'proxy: --seconds needs a number from 1 to 999.\n' >&2; exit 64 ;;
        esac
        ;;
    --json) json=yes ;;
    --help) usage; exit 0 ;;
    *) printf 'proxy: %s is not known; --help lists the options.\n' "$1" >&2; exit 64 ;;
    esac
    shift
done

say() { [ "$json" = yes ] || printf '%s\n' "$*"; }
missing() { printf 'missing: %s\n' "$1" >&2; exit 1; }
for tool in wrk curl python3 taskset; do
    command -v "$tool" >/dev/null || missing "$tool (apt-get install wrk curl python3 util-linux)"
done

program="${HOLDFAST:-}"
if [ -z "$program" ]; then
    say "building holdfast (swift build -c release --traits Tool --product holdfast)…"
    swift build -c release --traits Tool --product holdfast >&2
    program="$(swift build -c release --traits Tool --show-bin-path)/holdfast"
fi

work="$(mktemp -d)"
chmod 755 "$work"
started=()
finish() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# The server's core is the first this shell may use; the others are for wrk and the origin, or the same one where there is no other.
cores="$(taskset -cp $$ | sed 's/.*: //')"
server_core="$(printf '%s' "$cores" | sed 's/[-,].*//')"
client_cores="$(python3 - "$cores" <<'PY'
import sys
cores = []
for part in sys.argv[1].split(","):
    low, _, high = part.partition("-")
    cores += range(int(low), int(high or low) + 1)
print(",".join(map(str, cores[1:] or cores)))
PY
)"

origin_port="$(free_port)"
taskset -c "$client_cores" python3 - "$origin_port" <<'PY' &
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Type", "text/plain")
        self.send_header("ETag", '"a"')
        self.send_header("Content-Length", "1024")
        self.end_headers()
        self.wfile.write(b"x" * 1024)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Origin).serve_forever()
PY
started+=($!)

# The process and all beneath it: CPU ticks so far, and the peaks of resident memory added up, in kB.
family() {
    local pid="$1" child
    printf '%s\n' "$pid"
    for child in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do family "$child"; done
}
ticks() {
    local pid sum=0
    for pid in $(family "$1"); do
        sum=$((sum + $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | awk '{ print $12 + $13 }' || printf 0)))
    done
    printf '%s' "$sum"
}
peak() {
    local pid sum=0
    for pid in $(family "$1"); do
        sum=$((sum + $(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null || printf 0)))
    done
    printf '%s' "$sum"
}

results=()
say "$(printf '%-10s %12s %10s %16s %12s %8s  %s' server requests/s CPU-s requests/CPU-s 'peak RSS' errors latency)"

measure() {
    local name="$1" port="$2" pid="$3" tries=0 before after output rate errors cpu per memory latency count elapsed
    until curl -sf -o /dev/null "http://127.0.0.1:$port/hot"; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { printf '%s does not answer\n' "$name" >&2; exit 1; }
        read -rt 0.1 <> <(:) || true
    done
    taskset -c "$client_cores" wrk -c 64 -t 1 -d 1s "http://127.0.0.1:$port/hot" >/dev/null
    before="$(ticks "$pid")"
    output="$(taskset -c "$client_cores" wrk -c 64 -t 1 -d "${seconds}s" --latency "http://127.0.0.1:$port/hot")"
    after="$(ticks "$pid")"
    rate="$(printf '%s\n' "$output" | awk '/^Requests\/sec/ { print $2 }')"
    count="$(printf '%s\n' "$output" | awk '/requests in/ { print $1 }')"
    latency="$(printf '%s\n' "$output" | awk '/ 50%/ { m = $2 } / 99%/ { print "50% " m ", 99% " $2 }')"
    errors="$(printf '%s\n' "$output" | awk '/Socket errors/ { gsub(",", ""); s += $4 + $6 + $8 + $10 } /Non-2xx/ { s += $NF } END { print s + 0 }')"
    cpu="$(awk -v t="$((after - before))" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f", t / hz }')"
    per="$(awk -v n="$count" -v c="$cpu" 'BEGIN { printf "%.0f", (c > 0 ? n / c : 0) }')"
    memory="$(peak "$pid")"
    say "$(printf '%-10s %12.0f %10s %16s %9s MB %8s  %s' "$name" "$rate" "$cpu" "$per" "$((memory / 1024))" "$errors" "$latency")"
    for figure in "hot-1KiB:$rate:requests/s" "hot-1KiB-per-core:$per:requests/cpu-s" "hot-1KiB-memory:$((memory * 1024)):bytes" \
        "hot-1KiB-errors:$errors:errors"; do
        IFS=: read -r case value unit <<<"$figure"
        results+=("{\"case\": \"$case\", \"subject\": \"$name\", \"value\": $value, \"unit\": \"$unit\"}")
    done
}

# A peer without figures: its name, and why, one sentence without its full stop.
absent() {
    say "$(printf '%-10s skipped: %s' "$1" "$2")"
    results+=("{\"case\": \"hot-1KiB\", \"subject\": \"$1\", \"value\": null, \"unit\": \"requests/s\", \"skipped\": \"$2\"}")
}

stop() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

port="$(free_port)"
taskset -c "$server_core" "$program" proxy --listen "127.0.0.1:$port" --origin "http://127.0.0.1:$origin_port" 2>/dev/null &
started+=($!)
measure holdfast "$port" "$!"
stop "${started[-1]}"

if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then
    port="$(free_port)"
    mkdir -p "$work/nginx/cache" "$work/nginx/temp"
    user=""
    [ "$(id -u)" != 0 ] || user="user root;"
    cat >"$work/nginx/nginx.conf" <<CONF
$user
daemon off;
worker_processes 1;
pid $work/nginx/pid;
error_log $work/nginx/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $work/nginx/temp/a;
    proxy_temp_path $work/nginx/temp/b;
    fastcgi_temp_path $work/nginx/temp/c;
    uwsgi_temp_path $work/nginx/temp/d;
    scgi_temp_path $work/nginx/temp/e;
    proxy_cache_path $work/nginx/cache keys_zone=hot:10m;
    open_file_cache max=1000;
    server {
        listen 127.0.0.1:$port;
        location / {
            proxy_pass http://127.0.0.1:$origin_port;
            proxy_cache hot;
        }
    }
}
CONF
    PATH="$PATH:/usr/sbin" taskset -c "$server_core" nginx -c "$work/nginx/nginx.conf" -e "$work/nginx/error.log" &
    started+=($!)
    measure nginx "$port" "$!"
    stop "${started[-1]}"
else
    absent nginx "it is not installed (apt-get install nginx-light)"
fi

if command -v varnishd >/dev/null || [ -x /usr/sbin/varnishd ]; then
    port="$(free_port)"
    PATH="$PATH:/usr/sbin" taskset -c "$server_core" varnishd -F -n "$work/varnish" -a "127.0.0.1:$port" \
        -b "127.0.0.1:$origin_port" -s malloc,64m >"$work/varnish.log" 2>&1 &
    started+=($!)
    measure varnish "$port" "$!"
    stop "${started[-1]}"
else
    absent varnish "it is not installed (apt-get install varnish)"
fi

say ""
say "holdfast   for its time: parses the head, judges freshness anew by RFC 9111, writes Age; body from memory, one write"
say "nginx      looks its key up in shared memory and sends the file it stored; judges by the time of expiry alone, writes no Age"
say "varnish    runs its VCL for each request and writes a record of it to shared memory; body from memory"
if [ "$json" = yes ]; then
    printf '{"results": ['
    for index in "${!results[@]}"; do
        [ "$index" = 0 ] || printf ', '
        printf '%s' "${results[$index]}"
    done
    printf ']}\n'
fi

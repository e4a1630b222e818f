#!/usr/bin/env bash
# Runs the benchmarks and writes their figures, with date, machine and command, between the markers of Benchmarks/README.md:
#
#     <!-- figures:NAME --> … <!-- /figures:NAME -->
#
#     Benchmarks/figures.sh [--full] [NAMES]
#
# `storm` and `hitrate` calculate; tables.py writes what they print into the tables of docs/. Without names: every benchmark that has
# markers, and with --full these two as well. Run it on a machine that nobody else uses.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: Benchmarks/figures.sh [--full] [NAMES]

Runs benchmarks and rewrites their figures between the markers of Benchmarks/README.md, and those of storm and hitrate in the tables of
docs/retrying.md and docs/measuring-hit-rates.md; then draws the pictures of docs/images from the tables.

  NAMES     disk, hit, hitrate, overhead, proxy, scale, storm; without names disk, hit, overhead, proxy and scale, and with --full all.
            storm takes about six minutes, and hitrate about ten; they are always whole runs
  --full    whole runs, which take long, in place of --quick
  --help    this text

Exit status: 0, 1 when a benchmark failed (the figures of those before it are written), 64 for bad arguments.
TEXT
}

page=Benchmarks/README.md
speed=(--quick) names=()
for argument in "$@"; do
    case "$argument" in
    --full) speed=() ;;
    --help) usage; exit 0 ;;
    disk | hit | hitrate | overhead | proxy | scale | storm) names+=("$argument") ;;
    *) printf 'figures: %s is not known; --help lists the names.\n' "$argument" >&2; exit 64 ;;
    esac
done
if [ ${#names[@]} = 0 ]; then
    while read -r name; do names+=("$name"); done < <(sed -n 's/^<!-- figures:\([a-z]*\) -->$/\1/p' "$page" | sort -u)
    [ ${#speed[@]} != 0 ] || names+=(hitrate storm)
fi

swift build -c release --package-path Benchmarks >&2
programs="$(swift build -c release --package-path Benchmarks --show-bin-path)"
for name in "${names[@]}"; do
    printf '== %s\n' "$name" >&2
    case "$name" in storm | hitrate) python3 Benchmarks/tables.py "$name" "$programs/$name"; continue ;; esac
    if [ "$name" = proxy ]; then
        command="Benchmarks/proxy.sh ${speed[*]}"
        found="$(Benchmarks/proxy.sh --json ${speed[@]+"${speed[@]}"})"
    else
        command="swift run -c release --package-path Benchmarks $name ${speed[*]}"
        found="$("$programs/$name" --json ${speed[@]+"${speed[@]}"})"
    fi
    FOUND="$found" python3 - "$name" "$command" "$page" <<'PY'
import datetime, json, os, platform, re, subprocess, sys

name, command, page = sys.argv[1], sys.argv[2].strip(), sys.argv[3]
rows = json.loads(os.environ["FOUND"])["results"]


def output(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def machine():
    if sys.platform == "darwin":
        processor, memory = output("sysctl", "-n", "machdep.cpu.brand_string"), int(output("sysctl", "-n", "hw.memsize"))
    else:
        processor = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
        processor = processor[1] if processor else platform.machine()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    swift = re.search(r"Swift version (\S+)", output("swift", "--version"))
    return (f"{processor}, {os.cpu_count()} processors, {memory / 2**30:.0f} GiB, "
            f"{platform.system()}, Swift {swift[1] if swift else 'of unknown version'}")


def figure(row):
    value = row["value"]
    if value is None:
        return "skipped"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.4g}" if value and abs(value) < 1 else f"{value:.1f}"


# A table for each set of subjects, in the order of the cases: one with a column for everybody would be mostly empty.
cases = {}
for row in rows:
    cases.setdefault((row["case"], row["unit"]), {})[row["subject"]] = row
tables = {}
for case, found in cases.items():
    tables.setdefault(tuple(found), []).append((case, found))
today = datetime.date.today()
parts = [f"{today.day} {today:%B %Y}; {machine()}; `{command}`."]
for subjects, found in tables.items():
    lines = ["| case | unit | " + " | ".join(subjects) + " |", "|---|---|" + "---|" * len(subjects)]
    lines += [f"| `{case}` | {unit} | " + " | ".join(figure(own[s]) for s in subjects) + " |" for (case, unit), own in found]
    parts.append("\n".join(lines))
reasons = {}
for row in rows:
    if row.get("skipped"):
        reasons.setdefault(row["skipped"], {})[row["case"]] = None
parts += [f"Skipped: {', '.join(f'`{case}`' for case in own)}: {reason}." for reason, own in reasons.items()]

pattern = re.compile(rf"(<!-- figures:{name} -->\n).*?(<!-- /figures:{name} -->)", re.S)
text = "\n\n".join(parts)
old = open(page).read()
new = pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", old)
if new != old:
    open(page, "w").write(new)
    print(f"{page}: figures of {name}", file=sys.stderr)
PY
done

# The pictures show these figures.
.ci/pictures

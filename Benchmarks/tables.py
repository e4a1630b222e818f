# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""Rewrites the tables of docs/ that storm and hitrate calculate; figures.sh calls it.

    tables.py storm PROGRAM
    tables.py hitrate PROGRAM [TRACES]     TRACES: the folder with the open traces

What the programs print is the same on every machine, so a difference is a change of the rules, the policies or the model. Rows of
subjects that no longer exist, such as 0.1.0, stay as they are, and so do bold figures."""
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def results(*command):
    """What a program measured: (case, subject, unit) -> value, or None where it is null."""
    output = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout
    return {(row["case"], row["subject"], row["unit"]): row["value"] for row in json.loads(output)["results"]}


def renew(page, heading, cells_of):
    """Rewrites the first table below a heading; `cells_of` gives the cells of a row by its first cell and the header, or None."""
    path = os.path.join(ROOT, page)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    place = next((i for i, line in enumerate(lines) if line.startswith("#") and line.endswith(heading)), None)
    if place is None:
        sys.exit(f"tables: {page} has no heading “{heading}”")
    first = next(i for i in range(place, len(lines)) if lines[i].startswith("|"))
    split = lambda line: [cell.strip() for cell in line.strip().strip("|").split("|")]
    header, changed, index = split(lines[first]), 0, first + 2
    while index < len(lines) and lines[index].startswith("|"):
        label, *old = split(lines[index])
        new = cells_of(label, header[1:])
        if new is not None:
            bold = [f"**{cell}**" if was.startswith("**") else cell for cell, was in zip(new, old, strict=True)]
            line = f"| {label} | " + " | ".join(bold) + " |"
            changed += line != lines[index]
            lines[index] = line
        index += 1
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"{page}, {heading}: {changed} rows changed", file=sys.stderr)


def short(number, places=1):
    text = f"{number:.{places}f}"
    return text.removesuffix("." + "0" * places)


def storm(program):
    subjects = {
        "`.default`": "default", "`.patient`": "patient", "`.interactive`": "interactive", "`.none`": "none",
        "full jitter, four attempts, no budget": "full-jitter", "AWS SDKs, standard 2.1": "aws-2.1", "gRPC (A6)": "grpc",
        "Finagle's budget": "finagle", "Alamofire's default": "alamofire", "Polly (.NET's standard handler)": "polly",
    }
    found = results(
        program, "--subject", ",".join(subjects.values()),
        "--case", "outage,slow,brownout-30,brownout-90,blip-8,blip-32,drained-blip-32,app,apps",
    )

    def cells(label, header):
        if label not in subjects:
            return None
        value = lambda case, unit="ratio": found[case, subjects[label], unit]
        percent = lambda case: short(100 * value(f"{case}/success"))
        load = lambda case: "1" if value(f"{case}/load") == 1 else f"{value(f'{case}/load'):.2f}"
        recovers = value("slow/recover-seconds", "s")
        figures = {
            "8 / 32 calls, one blip: succeed": " / ".join(f"{100 * value(f'blip-{n}/success'):.0f}" for n in (8, 32)) + " %",
            "32 after an outage": percent("drained-blip-32") + " %",
            "bursts, 30 % fail: succeed": percent("app") + " %",
            "fleet, outage: load": load("outage"),
            "small clients, outage: load": load("apps"),
            "slow server: recovers": "never" if recovers is None else short(recovers) + " s",
            "fleet, 30 % fail": percent("brownout-30") + " %",
            "fleet, 90 % fail: load": load("brownout-90"),
        }
        return [figures[name] for name in header]

    renew("docs/retrying.md", "Budgets", cells)


def hitrate(program, traces):
    files = sorted(glob.glob(os.path.join(traces, "*.trace")))
    if not files:
        print(f"tables: there are no traces in {traces}; the tables of hit rates stay as they are", file=sys.stderr)
        return
    named = [word for file in files for word in ("--trace", file)]
    found = results(program, *named, "--policy", "all,dtlfu-0.1")
    units = {"object %": "object-hit-ratio", "byte %": "byte-hit-ratio"}

    def mean(label, header):
        return [f"{100 * found[('mean', label.strip('`'), units[name])]:.2f}" for name in header]

    renew("docs/measuring-hit-rates.md", "The policies of this package", mean)

    # Their names in the table, and the policies in the order of its columns.
    chosen = {"web clients, 1998": "bu98", "package mirror": "cran_dec14", "key-value store": "twitter52_a"}
    sizes = [0.5, 1, 2, 5, 10, 20, 50, 100]
    named = [word for name in chosen.values() for word in ("--trace", os.path.join(traces, name + ".trace"))]
    found = results(program, *named, "--policy", "memory,lru", "--size", ",".join(f"{size:g}%" for size in sizes))

    def by_size(label, header):
        columns = [name.rsplit(": ", 1) for name in header]
        share = label.replace(" ", "")
        return [f"{100 * found[(f'{chosen[trace]}@{share}', policy, 'object-hit-ratio')]:.1f}" for trace, policy in columns]

    renew("docs/measuring-hit-rates.md", "Three traces, by size", by_size)


if __name__ == "__main__":
    name, program, *rest = sys.argv[1:]
    storm(program) if name == "storm" else hitrate(program, *(rest or [os.path.join(ROOT, "..", "shared", "traces")]))

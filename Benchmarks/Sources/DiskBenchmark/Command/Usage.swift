// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints, and the names there are.
enum Usage {
    static let speedCases = ["put", "get", "mixed"].flatMap { kind in
        ["1KiB", "16KiB", "1MiB"].map { "\(kind)-\($0)" }
    }
    static let openCases = ["open", "index"]
    static let reclaimCase = "reclaim"
    static let cases = speedCases + openCases + [reclaimCase]

    static let text = """
        usage: disk [--quick] [--json] [--case NAMES] [--subject NAMES] [--directory PATH] [options]

        Measures the disk store beside its peers: same data, same keys, same machine, turns taken in rounds, medians.

          --quick                  less of everything; ends within 45 seconds
          --json                   one JSON object in place of the tables
          --case NAMES             \(cases.joined(separator: ", "))
                                   (put, get and mixed stand for all three sizes)
          --subject NAMES          \(SubjectKind.all.map(\.name).joined(separator: ", "))
          --directory PATH         where to put files (default: beside the current directory); removed afterwards
          --rounds N               turns of each subject in a case (7; quick: 5)
          --entries N              entries of the open case (1000000)
          --fill-seconds N         after which the open case makes do with the entries it has (120; quick: 12)
          --seconds N              length of the reclaim case (60; quick: 3)
          --writes-per-second N    of the reclaim case's writer (4000; 0: as fast as it can)
          --help                   this text

        Exit status: 0, 1 when a subject did not read or write what it claims or something failed, 64 for bad arguments.

        """
}

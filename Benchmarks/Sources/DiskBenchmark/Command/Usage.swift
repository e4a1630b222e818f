// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`, and the names of the cases.
enum Usage {
    static let speedCases = ["put", "get", "mixed"].flatMap { kind in
        ["1KiB", "16KiB", "1MiB"].map { "\(kind)-\($0)" }
    }
    static let openCases = ["open", "index"]
    static let reclaimCase = "reclaim"
    static let cases = speedCases + openCases + [reclaimCase]

    static let text = """
        usage: disk [--quick] [--json] [--case NAMES] [--subject NAMES] [--directory PATH] [options]

        Compares the disk store with its peers: same data, keys and machine; subjects take turns; figures are medians.

          --quick                  measures less; ends within 45 seconds
          --json                   one JSON object instead of the tables
          --case NAMES             \(cases.joined(separator: ", "))
                                   (put, get and mixed stand for all three sizes)
          --subject NAMES          \(SubjectKind.all.map(\.name).joined(separator: ", "))
          --directory PATH         directory for files, which are removed afterwards (default: beside the current directory)
          --rounds N               turns of each subject in a case (7; quick: 5)
          --entries N              entries of the open case (1000000)
          --fill-seconds N         time limit for writing the entries of the open case (120; quick: 12)
          --seconds N              length of the reclaim case (60; quick: 3)
          --writes-per-second N    rate of the reclaim case's writer (4000; 0: as fast as it can)
          --help                   this text

        Exit status: 0, 1 if a subject did less than it claims or something failed, 64 for bad arguments.

        """
}

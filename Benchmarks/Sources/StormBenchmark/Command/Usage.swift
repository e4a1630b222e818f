// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`.
enum Usage {
    static let text = """
        usage: storm [--case NAMES] [--subject NAMES] [--scenario FILE]... [options]

        Runs retry rules through outages, slow servers, brown-outs and herds: real pipelines, a simulated server and fleet,
        virtual time. docs/measuring/measuring-retries.md describes the model and its limits.

          --case NAMES       \(wrapped(Plan.scenarioNames))
                             (brownout selects all brown-outs; default: all)
          --subject NAMES    \(wrapped(Plan.subjectNames))
          --scenario FILE    your own scenario, as JSON, instead of the study's; repeatable
          --seeds N,N,...    one run per seed; prints their mean (1,2,3, for blips 1 to 10; quick: 1)
          --plot FILE.svg    draws load and success over time: the first scenario, the mean of the runs
          --contention       instead of storms: clients that write the same row, as in the study by AWS of 2015
          --trials N         trials per row of the contention study (100; quick: 20)
          --jobs N           concurrent runs (one per processor)
          --quick            one run of the most informative cases; ends within 45 seconds
          --json             one JSON object instead of the tables; null for a figure that does not exist, such as the
                             seconds to recover for a subject that never does
          --help             this text

        load: attempts per call. peak: the most attempts in a tenth of a second after the fault, relative to the server's capacity;
        peak 1 s: the same in a second. healthy: calls to the resources without a fault. early/s: attempts that a process sent
        although it was told to wait, per second of that wait.

        Exit status: 0, 1 if something failed, 64 for bad arguments, 66 for a scenario that cannot be read.

        """

    /// Names on lines as wide as the text.
    private static func wrapped(_ names: [String]) -> String {
        var lines = [""]
        for name in names {
            if lines[lines.count - 1].count + name.count > 90 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : ", ") + name
        }
        return lines.joined(separator: ",\n                     ")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints.
enum Usage {
    static let text = """
        usage: storm [--case NAMES] [--subject NAMES] [--scenario FILE]... [options]

        Runs retry rules through outages, slow servers, brown-outs and herds: real pipelines, a simulated server and fleet,
        virtual time. docs/measuring/measuring-retries.md says what the model is and what it leaves out.

          --case NAMES       \(wrapped(Plan.scenarioNames))
                             (brownout stands for all of them); all is usual
          --subject NAMES    \(wrapped(Plan.subjectNames))
          --scenario FILE    a scenario of your own, as JSON, in place of the study's; may be given several times
          --seeds N,N,...    a run each, of which the mean is printed (1,2,3; quick: 1)
          --plot FILE.svg    draws load and success over time: the first scenario, the mean of the runs
          --contention       in place of storms: clients that want to write the same row, as in the study by AWS of 2015
          --trials N         trials of each row of it (100; quick: 20)
          --jobs N           runs at a time (one a processor)
          --quick            one run of the cases that tell the most; ends within 45 seconds
          --json             one JSON object in place of the tables; null where a figure does not exist, such as the seconds
                             to recover of who never does
          --help             this text

        load: attempts by calls. peak: the most attempts of a tenth of a second after the fault, by what the server can serve;
        peak 1 s: of a second. healthy: calls to the resources that nothing is wrong with. early/s: attempts sent by a process
        that was told to wait, by the seconds for which it was.

        Exit status: 0, 1 when something failed, 64 for bad arguments, 66 for a scenario that cannot be read.

        """

    /// Names on lines of the width of the text.
    private static func wrapped(_ names: [String]) -> String {
        var lines = [""]
        for name in names {
            if lines[lines.count - 1].count + name.count > 90 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : ", ") + name
        }
        return lines.joined(separator: ",\n                     ")
    }
}

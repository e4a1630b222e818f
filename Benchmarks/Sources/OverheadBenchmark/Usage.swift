// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`, and the text below the tables.
enum Usage {
    static let text = """
        usage: overhead [--quick] [--json] [--case NAMES] [--subject NAMES] [options]

        Measures what a pipeline adds to a successful call on a transport that responds immediately, compared with a direct call of
        the transport: nanoseconds, instructions and allocated blocks per call, with hooks, with a retrier and with a deadline.

          --quick                  measures less; ends within 45 seconds
          --json                   one JSON object instead of the table
          --case NAMES             \(OverheadCase.all.map(\.name).joined(separator: ", "))
          --subject NAMES          \(OverheadCase.subjects.joined(separator: ", "))
          --rounds N               turns of each subject in a case (15; quick: 7)
          --turn-milliseconds N    length of a turn (100; quick: 40)
          --help                   this text

        Exit status: 0, 1 if a call returned a wrong response, 64 for bad arguments.

        """

    /// What each subject does and does not do in the measured time.
    static let accounts = """
        holdfast  the whole pipeline: hooks down and up (each with onSchedule and onSuccess), acceptance, redirects, the attempt loop and
                  its records of attempts; with a retrier also a budget of retries, with a deadline also its instant
        direct    one asynchronous call through a protocol that returns immediately, with nothing of the above

        """
}

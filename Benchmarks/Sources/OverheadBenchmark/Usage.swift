// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints, and what is said beneath the tables.
enum Usage {
    static let text = """
        usage: overhead [--quick] [--json] [--case NAMES] [--subject NAMES] [options]

        Measures what a pipeline adds to a call that succeeds at once, over a transport that answers immediately: nanoseconds,
        instructions and allocated blocks by calls, with hooks, with a retrier and with a deadline; beside the transport called directly.

          --quick                  less of everything; ends within 45 seconds
          --json                   one JSON object in place of the table
          --case NAMES             \(OverheadCase.all.map(\.name).joined(separator: ", "))
          --subject NAMES          \(OverheadCase.subjects.joined(separator: ", "))
          --rounds N               turns of each subject in a case (15; quick: 7)
          --turn-milliseconds N    length of a turn (100; quick: 40)
          --help                   this text

        Exit status: 0, 1 when a call was answered wrong, 64 for bad arguments.

        """

    /// What each subject does for its time, and what it does not do.
    static let accounts = """
        holdfast  the whole pipeline: hooks down and up (each with onSchedule and onSuccess), acceptance, redirects, the attempt loop and
                  its records of attempts; with a retrier a budget of retries, with a deadline its instant
        direct    one asynchronous call through a protocol to what answers at once: nothing of the above

        """
}

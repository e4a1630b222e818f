// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`, and the text below the tables.
enum Usage {
    static let text = """
        usage: scale [--quick] [--json] [--plot FILE.svg] [--case NAMES] [--subject NAMES] [options]

        Measures whether a hit costs the same with more threads and more entries: look-ups in the memory store, including the body,
        of one hot key and of uniformly random keys, with 1 to 8 threads and with ten thousand to ten million entries; and complete
        cached calls with fewer entries. Figures are nanoseconds per hit over all threads.

          --quick            measures less; ends within 45 seconds, and leaves out sizes that take longer to fill
          --json             one JSON object instead of the tables and the charts
          --plot FILE.svg    also writes the charts as a picture
          --case NAMES       hot@1 … hot@8, uniform@1 … uniform@8 (threads), hot-10k … hot-10M, uniform-10k … uniform-10M (entries),
                             send-hot-10k, send-hot-100k, send-uniform-10k, send-uniform-100k (complete calls)
                             (hot, uniform and send select all cases that begin with them)
          --subject NAMES    \(SubjectKind.allCases.map(\.rawValue).joined(separator: ", "))
          --rounds N         turns of each subject in a case (15; quick: 5)
          --entries N        entries of the cases with several threads (100000)
          --hits N           most look-ups of a thread per turn (50000; quick: 20000), and a tenth as many complete calls;
                             a turn also ends after 60 ms (quick: 20)
          --help             this text

        Exit status: 0, 1 if a hit was missed or read wrong, or something failed, 64 for bad arguments.

        """

    /// What each subject does and does not do in the measured time.
    static let accounts = """
        holdfast    finds the entry among those of its key, counts the look-up and records the use for its eviction policy; in the send
                    cases the complete call through a pipeline
        dictionary  one dictionary under one lock: no limit, no records; in the send cases from the URL's text to a prepared response
        sharded     32 dictionaries, each under its own lock: no limit, no records

        """
}

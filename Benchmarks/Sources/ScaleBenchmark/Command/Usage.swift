// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints, and what is said beneath the tables.
enum Usage {
    static let text = """
        usage: scale [--quick] [--json] [--plot FILE.svg] [--case NAMES] [--subject NAMES] [options]

        Measures whether a hit costs the same with more threads and with more entries: look-ups of the memory store with the opening of
        the body, on one hot key and on keys chosen uniformly, by 1 to 8 threads at once and with ten thousand to ten million entries;
        and whole cached calls with fewer. Figures are nanoseconds by hits of all threads together.

          --quick            less of everything; ends within 45 seconds, and leaves out what cannot be filled in by then
          --json             one JSON object in place of the tables and the charts
          --plot FILE.svg    writes the charts as a picture too
          --case NAMES       hot@1 … hot@8, uniform@1 … uniform@8 (threads), hot-10k … hot-10M, uniform-10k … uniform-10M (entries),
                             send-hot-10k, send-hot-100k, send-uniform-10k, send-uniform-100k (whole calls)
                             (hot, uniform and send stand for all that begin so)
          --subject NAMES    \(SubjectKind.allCases.map(\.rawValue).joined(separator: ", "))
          --rounds N         turns of each subject in a case (15; quick: 5)
          --entries N        entries of the cases of several threads (100000)
          --hits N           look-ups of a thread in a turn at most (50000; quick: 20000); whole calls are a tenth as many;
                             a turn also ends after 60 ms (quick: 20)
          --help             this text

        Exit status: 0, 1 when a hit was missed, read wrong or something failed, 64 for bad arguments.

        """

    /// What each subject does for its time, and what it does not do.
    static let accounts = """
        holdfast    finds the entry among those of its key, counts the look-up and notes the use for its eviction policy; in the cases
                    of send the whole call through a pipeline
        dictionary  one dictionary under one lock: no bound, no notes; in the cases of send from the URL's text to a made answer
        sharded     32 dictionaries, each under a lock of its own: no bound, no notes

        """
}

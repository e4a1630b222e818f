// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints, and the names there are.
enum Usage {
    static let cases = HitCase.all.map(\.name) + [HitCase.allocations]
    static let subjects = ["holdfast", "dictionary"]

    static let text = """
        usage: memory [--quick] [--json] [--case NAMES] [--subject NAMES] [options]

        Measures hits of the memory store beside a dictionary under one lock, which evicts nothing and counts nothing: a look-up
        and the opening of the body, by one thread and by two at once. Figures are nanoseconds by hits of all threads
        together, so that @1 by @2 says how a subject scales; the turns of all cases alternate, and medians count.

          --quick            less of everything; ends within 45 seconds
          --json             one JSON object in place of the tables
          --case NAMES       \(cases.joined(separator: ", "))
                             (uniform and hot stand for both numbers of threads)
          --subject NAMES    \(subjects.joined(separator: ", "))
          --rounds N         turns of each subject in a case (9; quick: 7)
          --entries N        entries that the uniform cases choose from (100000)
          --hits N           hits of a thread in a turn (1000000; quick: 200000); on a busy machine take few, with many rounds,
                             and look at the best
          --help             this text

        Exit status: 0, 1 when a hit was missed, read wrong or something failed, 64 for bad arguments.

        """
}

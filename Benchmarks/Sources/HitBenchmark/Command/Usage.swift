// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`, and the names of the cases and subjects.
enum Usage {
    static let cases = HitCase.all.map(\.name) + Stage.allCases.map(\.name)
    static let subjects = [
        "holdfast", "holdfast-tiered", "dictionary", "raw", "urlcache", "hishel", "requests-cache",
    ]

    static let text = """
        usage: hit [--quick] [--json] [--case NAMES] [--subject NAMES] [--directory PATH] [options]

        Measures complete cached calls, from the URLRequest to the response with its whole body: a GET with 8 header fields, served
        from memory and from disk, with one thread and with two; and the stages of such a call, each alone. Figures are nanoseconds
        per hit over all threads, and instructions and allocated blocks per hit if the system counts them (one thread only).

          --quick                  measures less; ends within 45 seconds, not counting an installation
          --json                   one JSON object instead of the tables
          --case NAMES             \(wrapped(cases))
                                   (memory selects all in memory, memory-1KiB its variants, stage all stages)
          --subject NAMES          \(wrapped(subjects))
          --directory PATH         directory for files, which are removed afterwards (default: beside the current directory)
          --rounds N               turns of each subject in a case (15; quick: 5)
          --turn-milliseconds N    length of a turn (100; quick: 15)
          --entries N              requested resources, in random order (16)
          --install-seconds N      time limit for installing hishel and requests-cache, the first time (180)
          --help                   this text

        Exit status: 0, 1 if a response was wrong or something failed, 64 for bad arguments.

        """

    /// What each subject does and does not do in the measured time.
    static let accounts = """
        holdfast        reads the request's fields, finds the entry, checks that it is fresh, that the request allows it and that Vary
                        matches, writes the Age, counts the hit; on disk it verifies a checksum of every byte
        holdfast-tiered the same, from the memory tier above a disk
        dictionary      finds the URL's text under one lock and returns a prepared response: no freshness, no fields, no limit
        raw             finds the URL's text under one lock and reads the body with one call: no freshness, no fields, no checksum
        urlcache        URLCache.cachedResponse(for:): finds the entry by host and path and returns it, regardless of its age and of the
                        request; on disk it reads and decodes a file
        hishel          an httpx client with RFC 9111: SQLite in memory or in a file; decodes and evaluates the entry at each hit; CPython,
                        one thread
        requests-cache  a requests session that respects Cache-Control and Vary: a dictionary, or SQLite with pickled entries; CPython,
                        one thread

        """

    private static func wrapped(_ names: [String]) -> String {
        var lines = [""]
        for name in names {
            if lines[lines.count - 1].count + name.count > 84 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : ", ") + name
        }
        return lines.joined(separator: ",\n                           ")
    }
}

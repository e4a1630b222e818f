// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints, and the names there are.
enum Usage {
    static let cases = HitCase.all.map(\.name) + Stage.allCases.map(\.name)
    static let subjects = [
        "holdfast", "holdfast-tiered", "dictionary", "raw", "urlcache", "hishel", "requests-cache",
    ]

    static let text = """
        usage: hit [--quick] [--json] [--case NAMES] [--subject NAMES] [--directory PATH] [options]

        Measures a whole cached call, from the URLRequest to the response with its whole body: a GET with 8 header fields, answered
        from memory and from the disk, by one thread and by two at once; and the stages of such a call, each alone. Figures are
        nanoseconds by hits of all threads together, beside instructions and allocated blocks by hits where the system counts them
        (one thread).

          --quick                  less of everything; ends within 45 seconds, apart from an installation
          --json                   one JSON object in place of the tables
          --case NAMES             \(wrapped(cases))
                                   (memory stands for all in memory, memory-1KiB for its siblings, stage for all stages)
          --subject NAMES          \(wrapped(subjects))
          --directory PATH         where to put files (default: beside the current directory); removed afterwards
          --rounds N               turns of each subject in a case (15; quick: 5)
          --turn-milliseconds N    length of a turn (100; quick: 15)
          --entries N              resources that are asked for, in no order (16)
          --install-seconds N      how long installing hishel and requests-cache may take, the first time (180)
          --help                   this text

        Exit status: 0, 1 when an answer was wrong or something failed, 64 for bad arguments.

        """

    /// What each subject does for its time, and what it does not do.
    static let accounts = """
        holdfast        reads the request's fields, finds the entry, makes sure that it is fresh by the clock, that nothing the caller says
                        forbids it and that Vary agrees, writes the Age, counts the hit; on the disk it checks a checksum of every byte
        holdfast-tiered the same from the memory tier above a disk
        dictionary      finds the URL's text under one lock and hands out an answer made before: no freshness, no fields, no bound
        raw             finds the URL's text under one lock and reads the body by one call: no freshness, no fields, no checksum
        urlcache        URLCache.cachedResponse(for:): finds the entry by host and path and hands it out, however old and whatever the
                        request says; on the disk it reads and decodes a file
        hishel          an httpx client by RFC 9111: SQLite in memory or in a file, entry decoded and judged at each hit; CPython, one thread
        requests-cache  a requests session that goes by Cache-Control and Vary: a dictionary, or SQLite with pickled entries; CPython, one
                        thread

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

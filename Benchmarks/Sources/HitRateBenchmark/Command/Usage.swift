// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints.
enum Usage {
    static let text = """
        usage: hitrate [--trace FILE]... [--policy NAMES] [--size SIZES] [options]

        Replays recorded requests through eviction policies and prints what they would have hit.

          --trace FILE       requests: a .trace file (12 bytes a request: key in 8, size in 4, little-endian), or text
                             (.txt, .csv, .tsv, .log: a line 'key size [time [life]]' a request); may be given several times.
                             Without it a trace is made: 200,000 requests by Zipf's law
          --policy NAMES     all (usual), or some of
                             \(wrapped(Subject.all.map(\.name)))
                             memory and disk are the defaults of the two tiers; dtlfu-B takes any B from 0 to 1
          --size SIZES       with commas between: a share of the bytes of all keys (0.1%), bytes (4096, 64MB, 1GiB), or
                             'curve': 20 sizes from 0.01% to 100% (0.1%,1%,10%; with --plot: curve)
          --plot FILE.svg    draws the miss-ratio curves; of several traces the mean
          --measure M        object (usual) or byte: what the plot shows
          --seed N           for policies that draw at random, and for the made trace (1)
          --rate R           the share of keys that the traces have, when they are samples: sizes in bytes stand for the whole
                             (what FILE.rate says, which HitRateRecorder writes beside a sample; else 1)
          --warm-up R        the share of requests, from the start, that are not counted (0)
          --versions V       by-size (usual): another size of a key is another version, a miss; by-key: it is the same
          --requests N       only so many requests from the start of each trace
          --jobs N           replays at a time (one a processor)
          --quick            the first 200,000 requests of each trace; ends within 45 seconds
          --json             one JSON object in place of the tables: the case is TRACE@SIZE, the units object-hit-ratio,
                             byte-hit-ratio and write-amplification
          --help             this text

        written: bytes written, and moved within the cache, for each byte requested; ampl.: for each byte put. Mreq/s: millions of requests a second of
        one processor. belady and belady-size know the future: a bound, not a policy (with sizes not a proven one).

        Exit status: 0, 1 when something failed, 64 for bad arguments, 66 for a trace that cannot be read.

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

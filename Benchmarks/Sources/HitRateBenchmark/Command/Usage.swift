// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The output of `--help`.
enum Usage {
    static let text = """
        usage: hitrate [--trace FILE]... [--policy NAMES] [--size SIZES] [options]

        Replays recorded requests through eviction policies and prints their hit rates.

          --trace FILE       requests: a .trace file (12 bytes per request: key in 8, size in 4, little-endian), or text
                             (.txt, .csv, .tsv, .log: one line 'key size [time [life]]' per request); repeatable.
                             Without it a trace is generated: 200,000 requests by Zipf's law
          --policy NAMES     all (default), or some of
                             \(wrapped(Subject.all.map(\.name)))
                             memory and disk are the defaults of the two tiers; dtlfu-B accepts any B from 0 to 1
          --size SIZES       separated by commas: a share of the bytes of all keys (0.1%), bytes (4096, 64MB, 1GiB), or
                             'curve': 20 sizes from 0.01% to 100% (0.1%,1%,10%; with --plot: curve)
          --plot FILE.svg    draws the miss-ratio curves; for several traces the mean
          --measure M        what the plot shows: object (default) or byte
          --seed N           seed for random policies and the generated trace (1)
          --rate R           the share of keys in the traces, if they are samples; sizes in bytes are those of a complete trace
                             (from FILE.rate, which HitRateRecorder writes beside a sample; otherwise 1)
          --warm-up R        the share of requests at the start that are not counted (0)
          --versions V       by-size (default): a different size means a new version, a miss; by-key: it is the same version
          --requests N       uses only this many requests from the start of each trace
          --jobs N           concurrent replays (one per processor)
          --quick            uses the first 200,000 requests of each trace; ends within 45 seconds
          --json             one JSON object instead of the tables: the case is TRACE@SIZE, the units are object-hit-ratio,
                             byte-hit-ratio and write-amplification
          --help             this text

        written: bytes written, and moved within the cache, per requested byte; ampl.: per byte that was put. Mreq/s: millions of
        requests per second of processor time. belady and belady-size know the future: they are bounds, not policies (not proven
        bounds with different sizes).

        Exit status: 0, 1 if something failed, 64 for bad arguments, 66 for a trace that cannot be read.

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

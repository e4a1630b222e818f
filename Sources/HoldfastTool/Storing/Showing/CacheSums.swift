// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastSemantics

    /// What is counted of the entries of a cache, in memory of a bounded size.
    struct CacheSums: Sendable {
        /// Hosts that are counted one by one; more are counted together.
        private static let mostHosts = 100_000

        private var entries = 0
        private var fresh = 0
        private var personal = 0
        private var pinned = 0
        private var bodyBytes = 0
        private var storedBytes = 0
        private var hosts: [String: Int] = [:]
        private var otherHosts = 0
        private var hits: [Int: Int] = [:]
        private var statuses = Histogram(
            "status",
            [("1xx", 200), ("2xx", 300), ("3xx", 400), ("4xx", 500), ("5xx", 600)],
            beyond: "other"
        )
        private var sizes = Histogram(
            "body size",
            [
                ("empty", 1), ("< 1 kB", 1_000), ("< 10 kB", 10_000), ("< 100 kB", 100_000), ("< 1 MB", 1_000_000),
                ("< 10 MB", 10_000_000), ("< 100 MB", 100_000_000),
            ],
            beyond: "more"
        )
        private var ages = Histogram(
            "age",
            [
                ("< 1 minute", 60), ("< 10 minutes", 600), ("< 1 hour", 3_600), ("< 6 hours", 21_600),
                ("< 1 day", 86_400), ("< 1 week", 604_800), ("< 30 days", 2_592_000),
            ],
            beyond: "more"
        )

        mutating func add(_ info: CacheEntryInfo) {
            entries += 1
            if info.isFresh { fresh += 1 }
            if info.isPersonal { personal += 1 }
            if info.isPinned { pinned += 1 }
            bodyBytes = Self.sum(bodyBytes, info.bodyLength)
            storedBytes = Self.sum(storedBytes, info.storedBytes ?? 0)
            statuses.add(info.status.rawValue)
            sizes.add(info.bodyLength)
            ages.add(Int(clamping: info.age))
            let host = info.target.host
            if hosts[host] != nil || hosts.count < Self.mostHosts {
                hosts[host, default: 0] += 1
            } else {
                otherHosts += 1
            }
            if let count = info.hits { hits[min(count, 10), default: 0] += 1 }
        }

        private static func sum(_ left: Int, _ right: Int) -> Int {
            let (sum, overflow) = left.addingReportingOverflow(right)
            return overflow ? .max : sum
        }

        private var topHosts: Histogram {
            let sorted = hosts.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
            let top = sorted.prefix(10).map { (label: $0.key, count: $0.value) }
            let rest = sorted.dropFirst(10).reduce(otherHosts) { $0 + $1.value }
            return Histogram("hosts", counted: top + (rest > 0 ? [("(others)", rest)] : []))
        }

        private var hitCounts: Histogram {
            Histogram("hits", counted: hits.sorted { $0.key < $1.key }.map { ("\($0.key)", $0.value) })
        }

        /// For people.
        func text(used: Int, holder: Int32?, width: Int) -> String {
            var text = """
                entries    \(entries) (\(fresh) fresh, \(entries - fresh) stale or to confirm)
                bodies     \(ByteCount(bodyBytes))
                on disk    \(ByteCount(storedBytes)) of entries, \(ByteCount(used)) in all files
                open in    \(holder.map { "process \($0)" } ?? "no process")

                """
            if personal > 0 { text += "personal   \(personal)\n" }
            if pinned > 0 { text += "pinned     \(pinned)\n" }
            let drawn = [sizes, ages, statuses, topHosts, hitCounts].map { $0.text(width: width) }
            return text + drawn.filter { !$0.isEmpty }.map { "\n" + $0 }.joined()
        }

        /// For programs.
        func json(used: Int, holder: Int32?) -> JSONText {
            .object([
                (
                    "totals",
                    .object([
                        ("entries", .int(entries)), ("fresh", .int(fresh)), ("personal", .int(personal)),
                        ("pinned", .int(pinned)), ("bodyBytes", .int(bodyBytes)), ("storedBytes", .int(storedBytes)),
                        ("bytesUsed", .int(used)), ("holder", holder.map { .int(Int($0)) } ?? .null),
                    ])
                ),
                ("sizes", sizes.json), ("ages", ages.json), ("statuses", statuses.json), ("hosts", topHosts.json),
                ("hits", hits.isEmpty ? .null : hitCounts.json),
            ])
        }
    }
#endif

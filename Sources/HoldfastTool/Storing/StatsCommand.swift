// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache stats`.
    struct StatsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "stats",
            abstract: "Count the responses in a disk cache, and draw sizes, ages and hosts.",
            discussion: """
                How often responses were requested is known only to the process that has the cache open; it is not written to the disk.

                Examples:
                  holdfast cache stats -d cache
                  holdfast cache stats -d cache --host api.example --json | jq .totals
                """
        )

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all given options must match)") var filter: EntryFilter

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() async throws {
            try await run(on: .standard)
        }

        func run(on console: Console, now: Timestamp = SystemClock().timestamp) async throws {
            let opened = try await location.read()
            var sums = CacheTotals()
            let entries = opened.cache.entries(.matching(try filter.predicate()), now: now)
            do throws(StoreError) {
                for try await info in entries {
                    sums.add(info)
                }
            } catch {
                throw CommandFailure(error)
            }
            let used = opened.reader.statistics.bytesUsed
            if json {
                console.output(sums.json(used: used, holder: opened.reader.holder).text + "\n")
            } else {
                console.output(sums.text(used: used, holder: opened.reader.holder, width: console.width))
            }
            opened.tellSealed(on: console)
            await opened.cache.close()
        }
    }

    /// Totals of the entries of a cache, in limited memory.
    struct CacheTotals: Sendable {
        /// The most hosts that are counted separately; others are counted together.
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
            classes: [("1xx", 200), ("2xx", 300), ("3xx", 400), ("4xx", 500), ("5xx", 600)],
            beyond: "other"
        )
        private var sizes = Histogram(
            "body size",
            classes: [
                ("empty", 1), ("< 1 kB", 1_000), ("< 10 kB", 10_000), ("< 100 kB", 100_000), ("< 1 MB", 1_000_000),
                ("< 10 MB", 10_000_000), ("< 100 MB", 100_000_000),
            ],
            beyond: "more"
        )
        private var ages = Histogram(
            "age",
            classes: [
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

    /// How many things are in each of some classes, drawn with bars.
    struct Histogram: Sendable {
        let title: String
        private(set) var rows: [(label: String, count: Int)]
        /// The first number beyond each class; the last class has none.
        private let bounds: [Int]

        /// Creates classes that end before each bound, and one for everything beyond.
        init(_ title: String, classes: [(label: String, bound: Int)], beyond: String) {
            self.title = title
            bounds = classes.map(\.bound)
            rows = (classes.map(\.label) + [beyond]).map { ($0, 0) }
        }

        /// Creates a histogram of known counts.
        init(_ title: String, counted rows: [(label: String, count: Int)]) {
            self.title = title
            self.rows = rows
            bounds = []
        }

        mutating func add(_ number: Int) {
            rows[bounds.firstIndex { number < $0 } ?? bounds.count].count += 1
        }

        /// The lines, none wider than `width`; empty without counts.
        func text(width: Int) -> String {
            let most = rows.map(\.count).max() ?? 0
            guard most > 0 else { return "" }
            let (labels, counts) = (rows.map(\.label.count).max() ?? 0, String(most).count)
            let longest = min(60, max(8, width - labels - counts - 5))
            return title + "\n"
                + rows.map { label, count in
                    // Any count above zero is visible.
                    let eighths = count == 0 ? 0 : max(1, Int(Double(count) / Double(most) * Double(longest * 8)))
                    let bar =
                        String(repeating: "█", count: eighths / 8)
                        + (eighths % 8 == 0 ? "" : ["▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8 - 1])
                    let text = String(count)
                    let space = String(repeating: " ", count: labels - label.count)
                    let pad = String(repeating: " ", count: counts - text.count)
                    return "  \(label)\(space) \(pad)\(text)" + (bar.isEmpty ? "" : " " + bar) + "\n"
                }.joined()
        }

        /// The counts by label.
        var json: JSONText {
            .array(rows.map { .object([("label", .string($0.label)), ("count", .int($0.count))]) })
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache ls`.
    struct ListCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls",
            abstract: "List the responses in a disk cache.",
            discussion: """
                The responses are sorted by URL; if there are more than 10,000, they come in no order, and standard error says so. \
                With --sort, the first 10,000 are shown, or as many as --limit says.

                Examples:
                  holdfast cache ls -d cache
                  holdfast cache ls -d cache --host *.example.com --stale --sort age
                  holdfast cache ls -d cache --larger-than 1MB --sort size --limit 20
                  holdfast cache ls -d cache --json | jq -r '.[] | select(.status >= 400) | .url'
                """
        )

        enum Order: String, ExpressibleByArgument, CaseIterable {
            case url
            /// Largest first.
            case size
            /// Oldest first.
            case age
            /// Newest in the store first.
            case stored
            /// Stale longest first.
            case freshness

            func precedes(_ left: CacheEntryInfo, _ right: CacheEntryInfo) -> Bool {
                switch self {
                case .url: break
                case .size: if left.bodyLength != right.bodyLength { return left.bodyLength > right.bodyLength }
                case .age: if left.age != right.age { return left.age > right.age }
                case .stored: if left.storedAt != right.storedAt { return left.storedAt > right.storedAt }
                case .freshness:
                    if left.freshnessLeft != right.freshnessLeft { return left.freshnessLeft < right.freshnessLeft }
                }
                if left.target != right.target { return left.target.canonical < right.target.canonical }
                return left.notes < right.notes
            }
        }

        static let sortedByDefault = 10_000
        /// The rows of one table.
        static let block = 1_000

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all given options must match)") var filter: EntryFilter

        @Option(
            help:
                "Sort by url, size (largest first), age (oldest first), stored (newest first), freshness (stale longest first)."
        )
        var sort: Order?

        @Option(help: "Show at most this many.")
        var limit: Int?

        @Flag(help: "Print a JSON array, one object per line.")
        var json = false

        func validate() throws {
            if let limit, limit < 1 { throw ValidationError("--limit must be at least 1.") }
        }

        func run() async throws {
            try await run(on: .standard)
        }

        func run(on console: Console, now: Timestamp = SystemClock().timestamp) async throws {
            let opened = try await location.read()
            let entries = opened.cache.entries(.matching(try filter.predicate()), now: now)
            var printer = EntryPrinter(on: console, json: json)
            do throws(StoreError) {
                if sort != nil || limit != nil {
                    var best = BestEntries(limit: limit ?? Self.sortedByDefault, by: sort ?? .url)
                    for try await info in entries { best.add(info) }
                    for info in best.all { printer.add(info) }
                } else {
                    // nil once there are too many to sort.
                    var held: [CacheEntryInfo]? = []
                    for try await info in entries {
                        guard let found = held else {
                            printer.add(info)
                            continue
                        }
                        held?.append(info)
                        guard found.count == Self.sortedByDefault else { continue }
                        for info in found + [info] { printer.add(info) }
                        held = nil
                        console.error(
                            "holdfast: more than \(found.count) entries, in no order; use --sort for the first ones in order\n"
                        )
                    }
                    for info in (held ?? []).sorted(by: Order.url.precedes) { printer.add(info) }
                }
            } catch {
                throw CommandFailure(error)
            }
            printer.end()
            opened.tellSealed(on: console)
            await opened.cache.close()
        }
    }

    /// The first of all entries in some order, with memory for twice as many.
    struct BestEntries {
        private let limit: Int
        private let order: ListCommand.Order
        private var entries: [CacheEntryInfo] = []

        init(limit: Int, by order: ListCommand.Order) {
            self.limit = limit
            self.order = order
        }

        mutating func add(_ info: CacheEntryInfo) {
            entries.append(info)
            if entries.count >= limit.multipliedReportingOverflow(by: 2).partialValue, entries.count > limit {
                entries = all
            }
        }

        var all: [CacheEntryInfo] { Array(entries.sorted(by: order.precedes).prefix(limit)) }
    }

    /// Prints entries one by one: rows of tables, or elements of an array.
    struct EntryPrinter {
        private let console: Console
        private var array: JSONArrayWriter?
        private var table = EntryPrinter.table()
        private var rows = 0

        init(on console: Console, json: Bool) {
            self.console = console
            if json { array = JSONArrayWriter(on: console) }
        }

        private static func table() -> TextTable {
            TextTable(
                ["URL", "STATUS", "SIZE", "AGE", "FRESHNESS", "TAGS", "VARIANT"],
                alignments: [.left, .right, .right, .right, .left]
            )
        }

        mutating func add(_ info: CacheEntryInfo) {
            if array != nil {
                array?.add(.object(info.json))
                return
            }
            let method = info.method == .get ? "" : info.method.rawValue + " "
            let cells = [
                method + info.target.canonical, "\(info.status)", ByteCount(info.bodyLength).description,
                ReadableText.span(info.age), ReadableText.freshness(info), info.tags.sorted().joined(separator: ","),
                info.notes,
            ]
            table.add(cells.map(ReadableText.harmless))
            rows += 1
            if rows == ListCommand.block { flush() }
        }

        mutating func end() {
            if let array { array.end() } else { flush() }
        }

        private mutating func flush() {
            guard rows > 0 else { return }
            console.output(table.text(width: console.outputIsTerminal ? console.width : nil))
            (table, rows) = (Self.table(), 0)
        }
    }
#endif

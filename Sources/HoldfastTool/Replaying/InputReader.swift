// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Reads the files of a replay, evaluates their content, and collects the requests to replay; blocks.
    struct InputReader {
        /// What it found.
        struct Input: Sendable {
            let format: ReplayFormat
            var account: InputStatistics
            let trace: RequestTrace
            /// The share of all objects in the trace.
            let rate: Double
            /// Requests at the end, for objects in the trace, that were read but are not in it, because memory was full.
            let cut: Int
            /// The share of all objects that a recorded trace has.
            var recorded = 1.0

            /// A count, or a number of bytes, of all objects, by that of those in the trace.
            func whole(_ count: Int) -> Int { Int(min((Double(count) / rate / recorded).rounded(), 0x1p62)) }
        }

        /// The largest HAR file to read, because it is held in memory as a whole.
        static let largestHAR = 1 << 29

        let files: [String]
        let format: ReplayFormat
        let options: ReplayAssumptions
        let console: Console

        /// Reads all files, in their order.
        func read() throws(CommandFailure) -> Input {
            let progress = ProgressLine(on: console)
            defer { progress.clear() }
            var account = InputStatistics()
            var known: ReplayFormat?
            var requests: SampledRequests?
            var logEvaluator = AccessLogEvaluator(
                lifetime: options.lifetime,
                errorLifetime: options.errorLifetime,
                rules: options.rules
            )
            var entries: [RecordedExchange] = []
            var recorded: Double?
            for file in files {
                var source = try LogSource(file)
                var found = format
                if found == .auto { found = ReplayFormat(name: file) ?? .auto }
                if found == .auto { found = try ReplayFormat.sniff(try source.peek(), name: file) }
                if let known, known != found {
                    throw .usage("the files are of several formats; replay them one by one, or use --format")
                }
                known = found
                var held =
                    requests
                    ?? SampledRequests(
                        limit: options.keptRequests,
                        sizesAreOfObjects: found != .trace,
                        hasLives: found == .har || found == .log && options.limitsLives
                    )
                requests = nil
                switch found {
                case .trace:
                    let share = file == "-" ? 1 : HitRateRecorder.rate(ofTraceAt: URL(fileURLWithPath: file))
                    if let recorded, recorded != share {
                        throw .usage("the traces were recorded at several rates; replay them one by one")
                    }
                    recorded = share
                    try readTrace(file, account: &account, requests: &held, progress: progress)
                case .har: entries += try readHAR(&source, account: &account)
                case .log, .auto:
                    try readLog(
                        source,
                        evaluator: &logEvaluator,
                        account: &account,
                        requests: &held,
                        progress: progress
                    )
                }
                requests = held
            }
            guard let known, var requests else { throw .usage("give a file, or - for standard input") }
            evaluate(entries, account: &account, requests: &requests)
            try check(account, format: known)
            let (rate, cut) = (requests.rate, requests.cut)
            let (trace, unsized) = requests.trace()
            let unkept = Int((Double(unsized) / rate).rounded())
            account.unstored.add("\(CacheReason.notModified), of unknown size", count: unkept)
            return Input(
                format: known,
                account: account,
                trace: trace,
                rate: rate,
                cut: cut,
                recorded: recorded ?? 1
            )
        }

        private func readLog(
            _ source: LogSource,
            evaluator: inout AccessLogEvaluator,
            account: inout InputStatistics,
            requests: inout SampledRequests,
            progress: ProgressLine
        ) throws(CommandFailure) {
            var lines = LineReader(source)
            while let line = try lines.next() {
                if line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { continue }
                do {
                    evaluator.evaluate(try AccessLogLine(line), account: &account, requests: &requests)
                } catch {
                    let start = String(decoding: line.prefix(60), as: UTF8.self)
                    account.complain(
                        source.name,
                        place: "line \(lines.number)",
                        text: "\(error): \(HeadText.printable(start))"
                    )
                }
                if lines.number % 4_096 == 0 {
                    let done = source.size.map { Double(lines.source.position) / Double(max(1, $0)) }
                    progress.draw(done, text: "reading \(source.name), \(FigureText.grouped(lines.number)) lines")
                }
            }
        }

        private func readTrace(
            _ file: String,
            account: inout InputStatistics,
            requests: inout SampledRequests,
            progress: ProgressLine
        ) throws(CommandFailure) {
            do {
                var reader = try TraceReader(path: file == "-" ? "/dev/stdin" : file)
                while true {
                    let records = try reader.next()
                    if records.isEmpty { return }
                    for record in records {
                        var bytes: [UInt8] = []
                        withUnsafeBytes(of: record.key.littleEndian) { bytes += $0 }
                        requests.append(key: RequestTrace.hash(of: bytes), size: record.size)
                    }
                    account.requests += records.count
                    let done = reader.requestCount.map { Double(account.requests) / Double(max(1, $0)) }
                    progress.draw(done, text: "reading \(file), \(FigureText.grouped(account.requests)) requests")
                }
            } catch {
                throw CommandFailure("\(error.message)")
            }
        }

        private func readHAR(
            _ source: inout LogSource,
            account: inout InputStatistics
        ) throws(CommandFailure) -> [RecordedExchange] {
            let name = source.name
            let data = try source.rest(
                limit: Self.largestHAR,
                CommandFailure("\(name) is larger than 512 MiB, the limit for a HAR file; export it without bodies")
            )
            let items: [HARFile.Item]
            do {
                items = try JSONDecoder().decode(HARFile.self, from: data).log.entries
            } catch {
                throw CommandFailure(
                    "\(name) is not a HAR file: \(HARFile.words(error))\(HARFile.place(of: error, in: data))"
                )
            }
            var exchanges: [RecordedExchange] = []
            for (index, item) in items.enumerated() {
                do {
                    let entry = try item.entry.get()
                    exchanges.append(try RecordedExchange(entry, ignoresReloads: options.ignoresReloads))
                } catch RecordedExchange.Failure.malformed(let text) {
                    account.complain(name, place: "entry \(index + 1)", text: text)
                } catch RecordedExchange.Failure.bypass(let reason, let method) {
                    account.requests += 1
                    account.methods.add(method)
                    account.bypassed.add(reason)
                } catch {
                    account.complain(name, place: "entry \(index + 1)", text: HARFile.words(error))
                }
            }
            return exchanges
        }

        private func evaluate(
            _ exchanges: [RecordedExchange],
            account: inout InputStatistics,
            requests: inout SampledRequests
        ) {
            var evaluator = HAREvaluator(mode: options.mode, rules: options.rules)
            // Browsers group entries by page; a cache sees them in order of time.
            let order = exchanges.indices.sorted {
                (exchanges[$0].requestTime, $0) < (exchanges[$1].requestTime, $1)
            }
            for index in order { evaluator.evaluate(exchanges[index], account: &account) }
            evaluator.add(to: &requests)
        }

        private func check(_ account: InputStatistics, format: ReplayFormat) throws(CommandFailure) {
            // Single lines may look like another format.
            guard account.requests == 0 || account.lookups == 0 && account.malformed > account.requests else { return }
            let name = files.joined(separator: ", ")
            guard let first = account.complaints.first else {
                throw CommandFailure("\(name): there are no requests in it")
            }
            let form = format == .har ? "a HAR file" : "an access log in the common or combined format"
            throw CommandFailure("\(name): nothing could be read as \(form); \(first)")
        }
    }

    /// What was read, and what happened to it.
    ///
    /// Each request is one of: not looked up, looked up but its response is not kept, or replayed.
    struct InputStatistics: Sendable {
        /// How many broken lines or entries are shown.
        static let shownComplaints = 3

        var requests = 0
        var methods = Tally()
        /// When the requests were made; nil if the input does not say.
        private(set) var span: ClosedRange<Timestamp>?

        /// Lines or entries that could not be read, and the first of them.
        private(set) var malformed = 0
        private(set) var complaints: [String] = []

        /// Requests that no cache looks up, by reason.
        var bypassed = Tally()
        /// Requests that were looked up but whose response no cache keeps, by reason, and their bytes.
        var unstored = Tally()
        var unstoredBytes = 0
        /// What an unlimited cache does with the requests looked up, by reason; empty if the input has no fields.
        var unbounded = Tally()

        /// Requests that a cache looks up; hit ratios are relative to these.
        var lookups: Int { requests - bypassed.total }

        mutating func complain(_ file: String, place: String, text: String) {
            malformed += 1
            if complaints.count < Self.shownComplaints { complaints.append("\(file), \(place): \(text)") }
        }

        mutating func note(_ instant: Timestamp) {
            guard let known = span else {
                span = instant...instant
                return
            }
            if !known.contains(instant) { span = min(known.lowerBound, instant)...max(known.upperBound, instant) }
        }

        mutating func addUnstored(_ word: String, bytes: Int) {
            unstored.add(word)
            let (sum, overflow) = unstoredBytes.addingReportingOverflow(max(0, bytes))
            unstoredBytes = overflow ? .max : sum
        }
    }

    /// How often each of a few words occurred; beyond the limit they are counted together.
    struct Tally: Sendable, Hashable {
        private static let maximumWords = 40

        private var counts: [String: Int] = [:]

        /// The total.
        private(set) var total = 0

        mutating func add(_ word: String, count: Int = 1) {
            guard count > 0 else { return }
            total += count
            counts[counts[word] != nil || counts.count < Self.maximumWords ? word : "others", default: 0] += count
        }

        var isEmpty: Bool { counts.isEmpty }

        /// The words, the most frequent first.
        var sorted: [(word: String, count: Int)] {
            counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
        }
    }
#endif

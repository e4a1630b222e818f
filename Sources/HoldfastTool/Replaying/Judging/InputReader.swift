// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Reads the files of a replay, judges what is in them, and gathers the requests to replay; blocks.
    struct InputReader {
        /// What it found.
        struct Input: Sendable {
            let format: ReplayFormat
            var account: InputAccount
            let trace: RequestTrace
            /// The share of all objects that the trace has.
            let rate: Double
            /// Requests offered to the trace, kept or not.
            let offered: Int
            /// Requests at the end that were read but are not in the trace, since memory was full.
            let cut: Int
        }

        /// The largest HAR file that is read: it is held in memory as a whole.
        static let largestHAR = 1 << 29

        let files: [String]
        let format: ReplayFormat
        let options: ReplayAssumptions
        let console: Console

        /// Reads all files, in their order.
        func read() throws(CommandFailure) -> Input {
            let progress = ProgressLine(on: console)
            defer { progress.clear() }
            var account = InputAccount()
            var known: ReplayFormat?
            var requests: SampledRequests?
            var logJudge = AccessLogJudge(lifetime: options.lifetime, errorLifetime: options.errorLifetime)
            var entries: [RecordedExchange] = []
            for file in files {
                var source = try LogSource(file)
                var found = format
                if found == .auto { found = ReplayFormat(name: file) ?? .auto }
                if found == .auto { found = try ReplayFormat.sniff(try source.peek(), file) }
                if let known, known != found {
                    throw .usage("the files are of several formats; replay them one by one, or write --format")
                }
                known = found
                var held =
                    requests
                    ?? SampledRequests(
                        limit: options.keptRequests,
                        sizesAreOfObjects: found != .trace,
                        hasLives: found == .har || found == .log && options.lifetime != nil
                    )
                requests = nil
                switch found {
                case .trace: try readTrace(file, &account, &held, progress)
                case .har: entries += try readHAR(&source, &account)
                case .log, .auto: try readLog(source, &logJudge, &account, &held, progress)
                }
                requests = held
            }
            guard let known, var requests else { throw .usage("name a file, or - for standard input") }
            judge(entries, &account, &requests)
            try check(account, known)
            let (rate, offered, cut) = (requests.rate, requests.seen, requests.cut)
            let (trace, unsized) = requests.trace()
            account.addUnstored(
                times: Int((Double(unsized) / rate).rounded()),
                "\(CacheReason.notModified), of unknown size"
            )
            return Input(format: known, account: account, trace: trace, rate: rate, offered: offered, cut: cut)
        }

        private func readLog(
            _ source: LogSource,
            _ judge: inout AccessLogJudge,
            _ account: inout InputAccount,
            _ requests: inout SampledRequests,
            _ progress: ProgressLine
        ) throws(CommandFailure) {
            var lines = LineReader(source)
            while let line = try lines.next() {
                if line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { continue }
                do {
                    judge.judge(try AccessLogLine(line), &account, &requests)
                } catch {
                    let start = String(decoding: line.prefix(60), as: UTF8.self)
                    account.complain(source.name, "line \(lines.number)", "\(error): \(Self.printable(start))")
                }
                if lines.number % 4_096 == 0 {
                    let done = source.size.map { Double(lines.source.position) / Double(max(1, $0)) }
                    progress.draw(done, "reading \(source.name), \(FigureText.grouped(lines.number)) lines")
                }
            }
        }

        private func readTrace(
            _ file: String,
            _ account: inout InputAccount,
            _ requests: inout SampledRequests,
            _ progress: ProgressLine
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
                    progress.draw(done, "reading \(file), \(FigureText.grouped(account.requests)) requests")
                }
            } catch {
                throw CommandFailure("\(error.message)")
            }
        }

        private func readHAR(
            _ source: inout LogSource,
            _ account: inout InputAccount
        ) throws(CommandFailure) -> [RecordedExchange] {
            let name = source.name
            let data = try source.rest(
                limit: Self.largestHAR,
                CommandFailure("\(name) is larger than 512 MiB, too large for a HAR file; export it without bodies")
            )
            let items: [HARFile.Item]
            do {
                items = try JSONDecoder().decode(HARFile.self, from: data).log.entries
            } catch {
                throw CommandFailure("\(name) is no HAR file: \(HARFile.words(error))")
            }
            var exchanges: [RecordedExchange] = []
            for (index, item) in items.enumerated() {
                do {
                    let entry = try item.entry.get()
                    exchanges.append(try RecordedExchange(entry, ignoresReloads: options.ignoresReloads))
                } catch RecordedExchange.Failure.malformed(let text) {
                    account.complain(name, "entry \(index + 1)", text)
                } catch RecordedExchange.Failure.bypass(let reason, let method) {
                    account.requests += 1
                    account.methods.add(method)
                    account.bypassed.add(reason)
                } catch {
                    account.complain(name, "entry \(index + 1)", HARFile.words(error))
                }
            }
            return exchanges
        }

        private func judge(
            _ exchanges: [RecordedExchange],
            _ account: inout InputAccount,
            _ requests: inout SampledRequests
        ) {
            var judge = HARJudge(mode: options.mode)
            // Browsers group entries by page; a cache sees them in the order of time.
            let order = exchanges.indices.sorted {
                (exchanges[$0].requestTime, $0) < (exchanges[$1].requestTime, $1)
            }
            for index in order { judge.judge(exchanges[index], &account, &requests) }
        }

        private func check(_ account: InputAccount, _ format: ReplayFormat) throws(CommandFailure) {
            // A line here and there may look like one of another form.
            guard account.requests == 0 || account.lookups == 0 && account.malformed > account.requests else { return }
            let name = files.joined(separator: ", ")
            guard let first = account.complaints.first else { throw CommandFailure("\(name): no requests in it") }
            let form = format == .har ? "a HAR file" : "an access log in the common or combined form"
            throw CommandFailure("\(name): nothing could be read as \(form); \(first)")
        }

        /// Text of a stranger's as a terminal may show it.
        private static func printable(_ text: String) -> String {
            String(
                String.UnicodeScalarView(
                    text.unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "?" : $0 }
                )
            )
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Dispatch
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import HoldfastSemantics
    internal import Synchronization

    /// Writes a line for each request to standard output or a file, and one for each failure to standard error, on its
    /// own queue.
    ///
    /// If the output is read slowly, lines are lost and their number is reported; no request waits for it.
    final class ProxyLog: Sendable {
        private struct State {
            var pending: [UInt8] = []
            var lost = 0
            var isWriting = false
            /// The second of the last reported failures, how many were reported in it, how many have not been reported
            /// since, and how many reports wait to be written.
            var failures = (second: Int64(0), told: 0, untold: 0, waiting: 0)
        }

        private let kind: ProxyCommand.Log
        private let console: Console
        private let file: LogFile?
        private let state = Mutex(State())
        private let queue = DispatchQueue(label: "holdfast.log")
        /// Of its own, because a log that is not read keeps the other one waiting.
        private let failureQueue = DispatchQueue(label: "holdfast.failures")
        private static let limit = 1 << 20
        private static let delay = DispatchTimeInterval.milliseconds(20)
        /// How many failures are reported per second; for the rest only their number is.
        static let failuresPerSecond = 10
        private static let waitingFailures = 100

        /// - Parameters:
        ///   - path: the file that lines are appended to; nil: standard output.
        ///   - output: the standard output of the process; nil: the console's.
        /// - Throws: ``CommandFailure`` if the file cannot be opened.
        init(
            _ kind: ProxyCommand.Log,
            file path: String? = nil,
            output: LogFile? = nil,
            on console: Console
        ) throws(CommandFailure) {
            self.kind = kind
            self.console = console
            if let path { file = try LogFile(path) } else { file = output }
        }

        /// Logs a request.
        func note(_ record: ProxyRecord) {
            let line = Array((ProxyLog.line(record, kind: kind) + "\n").utf8)
            let begins = state.withLock { state in
                guard state.pending.count + line.count <= ProxyLog.limit else {
                    state.lost += 1
                    return false
                }
                state.pending += line
                defer { state.isWriting = true }
                return !state.isWriting
            }
            // Lines that come close together share a write and the thread's awakening.
            if begins { queue.asyncAfter(deadline: .now() + ProxyLog.delay) { self.write() } }
        }

        /// Reports a failure; if there are many in a second, only their number.
        func note(_ failure: ProxyFailure, at time: Timestamp = SystemClock().timestamp) {
            let second = time.millisecondsSinceEpoch / 1_000
            let untold: Int? = state.withLock { state in
                if state.failures.second != second { (state.failures.second, state.failures.told) = (second, 0) }
                guard state.failures.told < ProxyLog.failuresPerSecond,
                    state.failures.waiting < ProxyLog.waitingFailures
                else {
                    state.failures.untold += 1
                    return nil
                }
                state.failures.told += 1
                state.failures.waiting += 1
                defer { state.failures.untold = 0 }
                return state.failures.untold
            }
            guard let untold else { return }
            var line = untold > 0 ? "holdfast: \(untold) more failures were not reported\n" : ""
            if kind == .json {
                let object = JSONText.object([
                    ("time", .string(ProxyLog.instant(time))), ("failure", .string(failure.kind.rawValue)),
                    ("client", failure.clientAddress.map { .string($0) } ?? .null), ("text", .string(failure.text)),
                ])
                line += object.text + "\n"
            } else {
                let client = failure.clientAddress.map { " (client \($0))" } ?? ""
                line += "\(ProxyLog.instant(time)) \(failure.kind.rawValue) failure: \(failure.text)\(client)\n"
            }
            failureQueue.async { [self, line] in
                console.error(line)
                state.withLock { $0.failures.waiting -= 1 }
            }
        }

        /// Reopens the file under its name, which may be another file now.
        func reopen() {
            guard let file else { return }
            queue.async { [console] in
                do throws(CommandFailure) {
                    try file.reopen()
                } catch {
                    console.error("holdfast: continuing with the old log: \(error)\n")
                }
            }
        }

        /// Waits until everything is written, or until the time is up because nobody reads the output.
        func flush(within limit: DispatchTimeInterval = .seconds(2)) async {
            await withCheckedContinuation { continuation in
                let hasEnded = Atomic(false)
                let end = { @Sendable in
                    if !hasEnded.exchange(true, ordering: .relaxed) { continuation.resume() }
                }
                queue.async { [self] in
                    write()
                    failureQueue.async { end() }
                }
                DispatchQueue.global().asyncAfter(deadline: .now() + limit) { end() }
            }
        }

        private func write() {
            let (bytes, lost) = state.withLock { state in
                defer {
                    state.isWriting = false
                    state.pending = []
                    state.lost = 0
                }
                return (state.pending, state.lost)
            }
            guard !bytes.isEmpty else { return }
            var data = Data(bytes)
            if lost > 0 { data += lossLine(lost, reason: "the output is read too slowly") }
            guard let file else { return console.write(data) }
            let trouble = file.write(data) { lossLine($0, reason: "the log could not be written") }
            if let trouble { console.error("holdfast: \(trouble); lines are lost until it can be written\n") }
        }

        /// A line that tells of lost ones.
        private func lossLine(_ count: Int, reason: String) -> Data {
            guard kind == .json else { return Data("# \(count) lines lost because \(reason)\n".utf8) }
            let object = JSONText.object([
                ("time", .string(ProxyLog.instant(SystemClock().timestamp))), ("lost", .int(count)),
                ("reason", .string(reason)),
            ])
            return Data((object.text + "\n").utf8)
        }

        /// The line for a request.
        ///
        /// `access` is the combined format of web servers; `decisions` says what was done and why; `json` has both and more in an object.
        static func line(_ record: ProxyRecord, kind: ProxyCommand.Log) -> String {
            if kind == .json { return json(record).text }
            let client = record.clientAddress ?? "-"
            let target = record.target.map { quotable($0) } ?? "-"
            let method = record.method.map { quotable($0.rawValue) } ?? "-"
            if kind == .decisions {
                let decision =
                    record.refusal.map { "refused: \(quotable($0))" } ?? record.decision.map { "\($0)" }
                    ?? "not from a cache"
                return "\(method) \(target) \(record.status.rawValue) \(record.duration.wholeMilliseconds)ms "
                    + "\(record.attempts) sent, \(decision)"
            }
            // As other servers write it: a hyphen for a request line that could not be read.
            let line = record.method == nil ? "-" : "\(method) \(target) HTTP/\(record.version)"
            return "\(client) - - [\(commonTime(record.start))] \"\(line)\" "
                + "\(record.status.rawValue) \(record.bodyBytes) \"\(quotable(record.referer ?? "-"))\" "
                + "\"\(quotable(record.userAgent ?? "-"))\""
        }

        private static func json(_ record: ProxyRecord) -> JSONText {
            func text(_ value: String?) -> JSONText { value.map { .string($0) } ?? .null }
            return .object([
                ("time", .string(instant(record.start))),
                ("client", text(record.clientAddress)),
                ("method", text(record.method?.rawValue)),
                ("target", text(record.target)),
                ("status", .int(record.status.rawValue)),
                ("bytes", .int(record.bodyBytes)),
                ("complete", .bool(record.isComplete)),
                ("cache", text(record.decision?.outcome.word)),
                ("reason", text(record.refusal ?? record.decision.map { "\($0.reason)" })),
                (
                    "stored",
                    record.decision?.storage.map { storage in
                        if case .notStored = storage { .bool(false) } else { .bool(true) }
                    } ?? .null
                ),
                ("ms", .int(Int(record.duration.wholeMilliseconds))),
                ("origin_ms", record.originDuration.map { .int(Int($0.wholeMilliseconds)) } ?? .null),
                ("attempts", .int(record.attempts)),
                ("user_agent", text(record.userAgent)),
                ("referer", text(record.referer)),
            ])
        }

        /// A time in the format of RFC 3339, in UTC, to the millisecond.
        private static func instant(_ time: Timestamp) -> String {
            let digits = String(1_000 + time.millisecondsSinceEpoch % 1_000).dropFirst()
            return ReadableText.instant(time).replacing("Z", with: ".\(digits)Z")
        }

        /// Text from a client, escaped so that it ends neither a quotation nor a line.
        private static func quotable(_ text: String) -> String {
            guard
                text.unicodeScalars.contains(where: { $0 == "\"" || $0 == "\\" || $0.value < 0x20 || $0.value >= 0x7F })
            else { return text }
            return text.unicodeScalars.map { scalar in
                if scalar == "\"" || scalar == "\\" || scalar.value < 0x20 || scalar.value == 0x7F
                    || (0x80...0x9F).contains(scalar.value)
                {
                    let hex = String(scalar.value, radix: 16, uppercase: true)
                    return "\\x" + (hex.utf8.count == 1 ? "0" + hex : hex)
                }
                return String(Character(scalar))
            }.joined()
        }

        /// A time in the common log format, in UTC: `22/Nov/2026:19:41:39 +0000`.
        private static func commonTime(_ time: Timestamp) -> String {
            // An HTTP date is "Sun, 22 Nov 2026 19:41:39 GMT".
            let parts = HTTPDate(time).description.split(separator: " ")
            guard parts.count == 6 else { return "-" }
            return "\(parts[1])/\(parts[2])/\(parts[3]):\(parts[4]) +0000"
        }
    }

    /// What lines are appended to: a file that can be reopened under its name after it was moved away, or the standard
    /// output of the process.
    final class LogFile: Sendable {
        private struct State {
            let descriptor: Int32
            /// Whether the last write failed.
            var hasFailed = false
            var end = End()
        }

        /// How the log ends, and what is missing there.
        struct End: Equatable {
            /// Whether the last line has no line end.
            var isCut = false
            /// How many lines were lost since the last write that succeeded.
            var lost = 0

            /// What the next write begins with.
            func opening(lossLine: (_ count: Int) -> Data) -> Data {
                (isCut ? Data("\n".utf8) : Data()) + (lost > 0 ? lossLine(lost) : Data())
            }

            /// Some bytes of an opening and of lines were written.
            mutating func note(_ written: Int, of all: Data, opening: Int) {
                let lineEnd = UInt8(ascii: "\n")
                if written > 0 { isCut = all[written - 1] != lineEnd }
                // A line that lacks only its end is there: the next write begins with that.
                let told = written < all.count && all[written] == lineEnd ? written + 1 : written
                lost = (told < opening ? lost : 0) + all.dropFirst(max(told, opening)).count { $0 == lineEnd }
            }
        }

        /// The standard output of the process.
        static let standardOutput = LogFile()

        /// Nil for standard output.
        private let path: String?
        private let state: Mutex<State>

        /// - Throws: ``CommandFailure`` if the file cannot be opened.
        init(_ path: String) throws(CommandFailure) {
            self.path = path
            state = Mutex(try LogFile.open(path))
        }

        private init() {
            path = nil
            state = Mutex(State(descriptor: STDOUT_FILENO))
        }

        deinit { if path != nil { state.withLock { _ = close($0.descriptor) } } }

        /// Reopens the file; the old one stays in use if that fails.
        func reopen() throws(CommandFailure) {
            guard let path else { return }
            var new = try LogFile.open(path)
            let former = state.withLock { state in
                new.end.lost = state.end.lost
                defer { state = new }
                return state.descriptor
            }
            _ = close(former)
        }

        /// Appends lines.
        ///
        /// If a line was cut off before, for example by a full device, these begin on a new line, after one that tells
        /// how many were lost.
        ///
        /// - Parameter lossLine: makes that line.
        /// - Returns: the error, the first time after a success; otherwise nil.
        func write(_ data: Data, lossLine: (_ count: Int) -> Data) -> String? {
            state.withLock { state in
                let opening = state.end.opening(lossLine: lossLine)
                let all = opening + data
                let (written, failure) = LogFile.write(all, to: state.descriptor)
                state.end.note(written, of: all, opening: opening.count)
                defer { state.hasFailed = failure != nil }
                guard let failure, !state.hasFailed else { return nil }
                return "cannot write the log\(path.map { " \($0)" } ?? " to standard output"): "
                    + String(cString: strerror(failure))
            }
        }

        /// Writes as much as possible.
        private static func write(_ data: Data, to descriptor: Int32) -> (written: Int, failure: Int32?) {
            data.withUnsafeBytes { bytes in
                var written = 0
                while written < bytes.count {
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                    let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
                    if count >= 0 {
                        written += count
                    } else if errno == EAGAIN {
                        // Another process has made the output non-blocking.
                        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                        _ = poll(&wanted, 1, -1)
                    } else if errno != EINTR {
                        return (written, errno)
                    }
                }
                return (written, nil)
            }
        }

        private static func open(_ path: String) throws(CommandFailure) -> State {
            let descriptor = Foundation.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
            guard descriptor >= 0 else {
                throw CommandFailure("cannot open the log \(path): \(String(cString: strerror(errno)))")
            }
            return State(descriptor: descriptor, end: End(isCut: endsWithinLine(path)))
        }

        /// Whether a file's last line has no end, because a device was full or a process was killed.
        private static func endsWithinLine(_ path: String) -> Bool {
            let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { return false }
            defer { _ = close(descriptor) }
            var (status, last) = (stat(), UInt8(ascii: "\n"))
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0,
                pread(descriptor, &last, 1, status.st_size - 1) == 1
            else { return false }
            return last != UInt8(ascii: "\n")
        }
    }
#endif

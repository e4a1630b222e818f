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
            /// The second of the last reported failures, how many were reported in it, and how many have not been
            /// reported since.
            var failures = (second: Int64(0), told: 0, untold: 0)
        }

        private let kind: ProxyCommand.Log
        private let console: Console
        private let file: LogFile?
        private let state = Mutex(State())
        private let queue = DispatchQueue(label: "holdfast.log")
        private static let limit = 1 << 20
        private static let delay = DispatchTimeInterval.milliseconds(20)
        /// How many failures are reported per second; for the rest only their number is.
        static let failuresPerSecond = 10

        /// - Parameter path: the file that lines are appended to; nil: standard output.
        /// - Throws: ``CommandFailure`` if the file cannot be opened.
        init(_ kind: ProxyCommand.Log, file path: String? = nil, on console: Console) throws(CommandFailure) {
            self.kind = kind
            self.console = console
            if let path { file = try LogFile(path) } else { file = nil }
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
                guard state.failures.told < ProxyLog.failuresPerSecond else {
                    state.failures.untold += 1
                    return nil
                }
                state.failures.told += 1
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
            queue.async { [console, line] in console.error(line) }
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

        /// Waits until everything is written.
        func flush() async {
            await withCheckedContinuation { continuation in
                queue.async {
                    self.write()
                    continuation.resume()
                }
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
            if lost > 0 { data += Data("# \(lost) lines lost because the output is read too slowly\n".utf8) }
            guard let file else { return console.write(data) }
            if let trouble = file.write(data) { console.error("holdfast: \(trouble); lines are lost\n") }
        }

        /// The line for a request.
        ///
        /// `access` is the combined format of web servers; `decisions` says what was done and why; `json` has both and more in an object.
        static func line(_ record: ProxyRecord, kind: ProxyCommand.Log) -> String {
            if kind == .json { return json(record).text }
            let client = record.clientAddress ?? "-"
            let target = quotable(record.target)
            if kind == .decisions {
                let decision = record.decision.map { "\($0)" } ?? "not from a cache"
                return "\(record.method) \(target) \(record.status.rawValue) \(record.duration.wholeMilliseconds)ms "
                    + "\(record.attempts) sent, \(decision)"
            }
            return "\(client) - - [\(commonTime(record.start))] \"\(record.method) \(target) HTTP/\(record.version)\" "
                + "\(record.status.rawValue) \(record.bodyBytes) \"\(quotable(record.referer ?? "-"))\" "
                + "\"\(quotable(record.userAgent ?? "-"))\""
        }

        private static func json(_ record: ProxyRecord) -> JSONText {
            func text(_ value: String?) -> JSONText { value.map { .string($0) } ?? .null }
            return .object([
                ("time", .string(instant(record.start))),
                ("client", text(record.clientAddress)),
                ("method", .string(record.method.rawValue)),
                ("target", .string(record.target)),
                ("status", .int(record.status.rawValue)),
                ("bytes", .int(record.bodyBytes)),
                ("complete", .bool(record.isComplete)),
                ("cache", text(record.decision.map { "\($0.outcome)" })),
                ("reason", text(record.decision.map { "\($0.reason)" })),
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

    /// A file that lines are appended to, and that can be reopened under its name after it was moved away.
    final class LogFile: Sendable {
        private let path: String
        private let state: Mutex<(descriptor: Int32, hasFailed: Bool, isCut: Bool)>

        init(_ path: String) throws(CommandFailure) {
            self.path = path
            state = Mutex((try LogFile.open(path), false, false))
        }

        deinit { state.withLock { _ = close($0.descriptor) } }

        /// Reopens the file; the old one stays in use if that fails.
        func reopen() throws(CommandFailure) {
            let descriptor = try LogFile.open(path)
            let former = state.withLock { state in
                defer { state = (descriptor, false, false) }
                return state.descriptor
            }
            _ = close(former)
        }

        /// Appends bytes.
        ///
        /// - Returns: the error, the first time after a success; otherwise nil.
        func write(_ data: Data) -> String? {
            state.withLock { state in
                // What a full device cut off is a line of its own.
                let data = state.isCut ? Data("\n".utf8) + data : data
                let failure: Int32? = data.withUnsafeBytes { bytes in
                    var rest = bytes[...]
                    defer { if rest.startIndex > 0 { state.isCut = bytes[rest.startIndex - 1] != UInt8(ascii: "\n") } }
                    while let base = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
                        let count = Foundation.write(state.descriptor, base, rest.count)
                        if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return errno }
                    }
                    return nil
                }
                defer { state.hasFailed = failure != nil }
                guard let failure, !state.hasFailed else { return nil }
                return "cannot write the log \(path): \(String(cString: strerror(failure)))"
            }
        }

        private static func open(_ path: String) throws(CommandFailure) -> Int32 {
            let descriptor = Foundation.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
            guard descriptor >= 0 else {
                throw CommandFailure("cannot open the log \(path): \(String(cString: strerror(errno)))")
            }
            return descriptor
        }
    }
#endif

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

    /// Writes a line for each request to standard output, on a queue of its own.
    ///
    /// Who reads the output slowly loses lines, and is told how many; no request waits for it.
    final class ProxyLog: Sendable {
        private struct State {
            var pending: [UInt8] = []
            var lost = 0
            var isWriting = false
        }

        private let kind: ProxyCommand.Log
        private let console: Console
        private let state = Mutex(State())
        private let queue = DispatchQueue(label: "holdfast.log")
        private static let limit = 1 << 20

        init(_ kind: ProxyCommand.Log, on console: Console) {
            self.kind = kind
            self.console = console
        }

        /// Takes a line down.
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
            if begins { queue.async { self.write() } }
        }

        /// Waits until all is written.
        func flush() async {
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume() }
            }
        }

        private func write() {
            while true {
                let (bytes, lost) = state.withLock { state in
                    defer {
                        state.isWriting = !state.pending.isEmpty
                        state.pending = []
                        state.lost = 0
                    }
                    return (state.pending, state.lost)
                }
                guard !bytes.isEmpty else { return }
                console.write(Data(bytes))
                if lost > 0 { console.output("# \(lost) lines lost, since the output is read too slowly\n") }
            }
        }

        /// The line for a request.
        ///
        /// `access` is the combined format of web servers with the length at the head of the answer; `decisions` says what was
        /// done and why.
        static func line(_ record: ProxyRecord, kind: ProxyCommand.Log) -> String {
            let client = record.clientAddress ?? "-"
            let target = quotable(record.target)
            if kind == .decisions {
                let milliseconds =
                    record.duration.components.seconds * 1_000
                    + record.duration.components.attoseconds / 1_000_000_000_000_000
                let decision = record.decision.map { "\($0)" } ?? "not from a cache"
                return "\(record.method) \(target) \(record.status.rawValue) \(milliseconds)ms "
                    + "\(record.attempts) sent, \(decision)"
            }
            let length = record.bodyLength.map(String.init) ?? "-"
            return "\(client) - - [\(commonTime(record.start))] \"\(record.method) \(target) HTTP/\(record.version)\" "
                + "\(record.status.rawValue) \(length) \"\(quotable(record.referer ?? "-"))\" "
                + "\"\(quotable(record.userAgent ?? "-"))\""
        }

        /// Text of a client's, so that it ends neither a quotation nor a line.
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

        /// A time as the common log format has it, in UTC: `22/Nov/2026:19:41:39 +0000`.
        private static func commonTime(_ time: Timestamp) -> String {
            // An HTTP date is "Sun, 22 Nov 2026 19:41:39 GMT".
            let parts = HTTPDate(time).description.split(separator: " ")
            guard parts.count == 6 else { return "-" }
            return "\(parts[1])/\(parts[2])/\(parts[3]):\(parts[4]) +0000"
        }
    }
#endif

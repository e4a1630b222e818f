// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// What `-v` shows on standard error: `>` for requests, `<` for responses, `*` for decisions.
    struct VerboseLog: CallInterceptor, EventObserver {
        let console: Console
        let implicitFields: @Sendable (URLRequest) -> HeaderFields

        func interceptCall(
            _ request: URLRequest,
            context: CallContext,
            proceed: () async throws -> Response
        ) async throws -> Response {
            try await proceed()
        }

        func interceptSend(
            _ request: URLRequest,
            context: CallContext,
            proceed: (URLRequest) async throws -> Response
        ) async throws -> Response {
            let target = request.url.map { RedactedURL($0) }
            var text = "> \(request.httpMethod ?? "GET") \(target.map { "\($0)" } ?? "")\n"
            let fields = HeaderFields(request.allHTTPHeaderFields ?? [:]).merging(implicitFields(request))
            for line in fields.sorted(by: { $0.name.canonicalName < $1.name.canonicalName }) {
                let isSecret = [FieldName.authorization, .cookie, "Proxy-Authorization"].contains(line.name)
                text += "> \(line.name): \(isSecret ? "(not shown)" : HeadText.printable(line.value))\n"
            }
            console.error(text)
            let response = try await proceed(request)
            console.error(HeadText.head(response.status, fields: response.fields, prefix: "< "))
            return response
        }

        func observe(_ event: ServiceEvent) {
            guard let text = Self.text(of: event) else { return }
            console.error((event.isBackground ? "* in the background: " : "* ") + HeadText.printable(text) + "\n")
        }

        private static func text(of event: ServiceEvent) -> String? {
            let attempt = event.attempt.map { "attempt \($0)" } ?? "attempt"
            let delay = event.delay.map { " after \(HeadText.seconds($0))" } ?? ""
            switch event.name {
            case .attemptEnded:
                if let status = event.status { return "\(attempt): status \(status)\(delay)" }
                return "\(attempt): \(event.errorCode ?? "failed")\(delay)"
                    + ((event.error as? ServiceError).map { ", \($0.message)" } ?? "")
            // With a delay, it was told before.
            case .retryScheduled where event.delay ?? .zero > .zero: return nil
            case .retryScheduled, .backoffAwaited, .resendScheduled:
                let asked =
                    event.retryAfter.map { "; the server asked for \(HeadText.seconds($0)) (Retry-After)" } ?? ""
                let why = [event.retryClass.map { "\($0)" }, event.name == .resendScheduled ? event.detail : nil]
                    .compactMap { $0 }
                return "another attempt\(delay)" + (why.isEmpty ? "" : ", \(why.joined(separator: ", "))") + asked
            case .retriesStopped: return "no further attempt: \(event.stopReason?.rawValue ?? "given up")"
            case .redirected:
                return "redirect \(event.status.map { "\($0)" } ?? "") to \(event.redirectTarget.map { "\($0)" } ?? "")"
            case .gateAwaited, .paceAwaited:
                return "waits\(delay.isEmpty ? "" : " for" + delay.dropFirst(6)): the server asked for that"
            case .budgetAwaited: return "waits for the retry budget"
            case .bodyResumed: return "the body was interrupted and continues after \(event.bytes ?? 0) bytes"
            case .storeFailed: return "the cache failed: \(event.error.map { "\($0)" } ?? event.detail ?? "")"
            case .backgroundRevalidationStarted: return "revalidation started"
            case .backgroundRevalidationFailed: return "revalidation failed: \(event.errorCode ?? event.detail ?? "")"
            default: return nil
            }
        }
    }

    /// Heads of messages as text.
    enum HeadText {
        /// Status and fields, one per line. The HTTP version is left out, because a cached response has none.
        static func head(_ status: StatusCode, fields: HeaderFields, prefix: String) -> String {
            prefix + "HTTP \(status)\n" + fields.map { "\(prefix)\($0.name): \(printable($0.value))\n" }.joined()
        }

        /// Text from others, made safe for a terminal: without control characters.
        static func printable(_ text: String) -> String {
            guard text.unicodeScalars.contains(where: isControl) else { return text }
            return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "?" : $0 }))
        }

        /// `1.25 s`, `80 ms`.
        static func seconds(_ duration: Duration) -> String {
            let milliseconds = max(0, duration.wholeMilliseconds)
            if milliseconds < 1_000 { return "\(milliseconds) ms" }
            let hundredths = milliseconds / 10
            let rest = hundredths % 100
            if rest == 0 { return "\(hundredths / 100) s" }
            return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) s"
        }

        private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.generalCategory == .control
        }
    }

    /// The progress of a transfer, as a line on a terminal with size and rate.
    final class TransferProgress: Sendable {
        private let line: ProgressLine
        private let length: Int?
        private let clock: any HoldfastClock
        private let start: MonotonicInstant
        private let bytes = Mutex(0)

        init(_ console: Console, length: Int?, clock: any HoldfastClock) {
            line = ProgressLine(on: console)
            self.length = length
            self.clock = clock
            start = clock.now
        }

        func add(_ count: Int) {
            let bytes = bytes.withLock { bytes in
                bytes += count
                return bytes
            }
            let fraction = length.map { $0 > 0 ? Double(bytes) / Double($0) : 1 }
            line.draw(fraction, text: Self.text(bytes, of: length, in: start.duration(to: clock.now)))
        }

        func end() {
            line.clear()
        }

        /// `1.2 MB of 5 MB, 3.1 MB/s`.
        static func text(_ bytes: Int, of length: Int?, in time: Duration) -> String {
            let seconds = max(0.001, time / .seconds(1))
            let rate = ByteCount(Int(min(Double(bytes) / seconds, 0x1p52)))
            return "\(ByteCount(bytes))" + (length.map { " of \(ByteCount($0))" } ?? "") + ", \(rate)/s"
        }
    }
#endif

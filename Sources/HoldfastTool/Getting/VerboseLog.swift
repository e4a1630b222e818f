// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// What `-v` shows on standard error: `>` what is sent, `<` what comes, `*` what is decided.
    struct VerboseLog: CallSurrounding, EventObserver {
        let console: Console
        let implicitFields: @Sendable (URLRequest) -> HeaderFields

        func surroundCall(
            _ request: URLRequest,
            _ context: CallContext,
            _ proceed: () async throws -> Response
        ) async throws -> Response {
            try await proceed()
        }

        func surroundSend(
            _ request: URLRequest,
            _ context: CallContext,
            _ proceed: (URLRequest) async throws -> Response
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
            console.error(HeadText.head(response.status, response.fields, prefix: "< "))
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
            case .retryScheduled, .resendScheduled:
                let asked =
                    event.retryAfter.map { "; the server asked for \(HeadText.seconds($0)) (Retry-After)" } ?? ""
                let why = [event.retryClass.map { "\($0)" }, event.name == .resendScheduled ? event.detail : nil]
                    .compactMap { $0 }
                return "another attempt\(delay)" + (why.isEmpty ? "" : ", \(why.joined(separator: ", "))") + asked
            case .retriesStopped: return "no further attempt: \(event.stopReason?.rawValue ?? "given up")"
            case .redirected:
                return "redirect \(event.status.map { "\($0)" } ?? "") to \(event.redirectTarget.map { "\($0)" } ?? "")"
            case .gateAwaited, .paceAwaited:
                return "waits\(delay.isEmpty ? "" : " for" + delay.dropFirst(6)): the server asked for it"
            case .budgetAwaited: return "waits for the budget of retries"
            case .bodyResumed: return "the body broke off and goes on after \(event.bytes ?? 0) bytes"
            case .storeFailed: return "the cache failed: \(event.error.map { "\($0)" } ?? event.detail ?? "")"
            case .backgroundRevalidationStarted: return "revalidation began"
            case .backgroundRevalidationFailed: return "revalidation failed: \(event.errorCode ?? event.detail ?? "")"
            default: return nil
            }
        }
    }
#endif

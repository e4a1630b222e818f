// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

/// Logs what is sent and what comes back, through a closure and without credentials.
///
/// As a `ServiceHook`, among the hooks of a pipeline or a service, it sees the call when it is scheduled and when it ends. As a
/// ``RequestHook``, among a service's `requestHooks`, it sees the typed call and knows its name. Use it as only one of the two.
/// Each message is one text of several lines: what happened, then header fields, then content if ``bodyLimit`` allows it.
///
/// These are hidden: Authorization, Cookie, Set-Cookie, Proxy fields, the call's `credentialFields`, the user in a URL, and
/// every argument, field and JSON property whose name is secret by ``redaction``. Their values are hidden wherever else they
/// occur in the same message. Content is shown if it is JSON or a form and in memory; streams and files are never read.
public struct CallLogger: Sendable {
    /// Which calls are logged; all by default.
    public var filter: Filter = .all
    /// What is hidden.
    public var redaction = Redaction()
    /// The most characters of content to show; 0, the default: none.
    public var bodyLimit = 0
    /// Whether header fields are shown; true by default.
    public var showsFields = true
    /// The most characters of a URL or a field's value to show, at least 16; 512 by default.
    public var textLimit = 512

    private let write: @Sendable (String) -> Void

    /// Creates a logger that calls `write` with its messages, on whatever task a call runs.
    public init(_ write: @escaping @Sendable (String) -> Void) {
        self.write = write
    }

    /// Which calls are logged.
    public struct Filter: Sendable {
        /// What a filter decides by.
        public struct Subject: Sendable {
            /// The host, in lower case; nil if unknown, as for a typed call that failed without a response.
            public let host: String?
            /// The name of the call: `MyService.CheckStatus` for an endpoint, `MyRequest` for another request; if the logger is
            /// a `ServiceHook`, the call's `CallOptions.operationName`.
            public let operationName: String?
        }

        let isIncluded: @Sendable (Subject) -> Bool

        /// Creates a filter from a closure.
        public init(_ isIncluded: @escaping @Sendable (Subject) -> Bool) {
            self.isIncluded = isIncluded
        }

        /// All calls.
        public static let all = Filter { _ in true }

        /// Calls to these hosts and their subdomains; if the host is unknown, the call is logged.
        public static func hosts(_ hosts: String...) -> Filter {
            let hosts = hosts.map { $0.lowercased() }
            return Filter { subject in
                guard let host = subject.host else { return true }
                return hosts.contains { host == $0 || host.hasSuffix(".\($0)") }
            }
        }

        /// Typed calls by name: of a service, such as `MyService`, of one of its endpoints, such as `MyService.CheckStatus`, or
        /// of a request, such as `MyRequest`.
        public static func operations(_ names: String...) -> Filter {
            Filter { subject in
                guard let operation = subject.operationName else { return false }
                return names.contains { operation == $0 || operation.hasPrefix("\($0).") }
            }
        }
    }

    func includes(host: String?, operationName: String? = nil) -> Bool {
        filter.isIncluded(Filter.Subject(host: host?.lowercased(), operationName: operationName))
    }

    func write(_ message: CallMessage) {
        write(message.text)
    }

    func message(_ title: String, credentials: [FieldName]) -> CallMessage {
        CallMessage(self, title: title, credentials: Set(credentials))
    }
}

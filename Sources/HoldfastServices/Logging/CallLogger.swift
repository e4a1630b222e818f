// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

/// Writes what is sent and what comes back, through a closure, without credentials.
///
/// As a `ServiceHook`, among the hooks of a pipeline or a service, it sees the call as it is scheduled and its one ending. As a
/// ``RequestHook``, among a service's `requestHooks`, it sees the typed call and knows its name. Use it as one of the
/// two. Each message is one text of several lines: what happened, then header fields, then content where ``bodyLimit`` allows it.
///
/// Authorization, Cookie, Set-Cookie, Proxy fields, the call's `credentialFields`, the user in a URL, and every argument, field and
/// JSON property whose name is secret by ``redaction`` are hidden, and so is each of their values wherever else it turns up in
/// the same message. Content is shown where it is JSON or a form and lies in memory; streams and files are never read.
public struct CallLogger: Sendable {
    /// Which calls are written; all by default.
    public var filter: Filter = .all
    /// What is hidden.
    public var redaction = Redaction()
    /// The most characters of content that are shown; 0, the default: none.
    public var bodyLimit = 0
    /// Whether header fields are shown; true by default.
    public var showsFields = true
    /// The most characters of a URL or a field's value that are shown, 16 at least; 512 by default.
    public var textLimit = 512

    private let write: @Sendable (String) -> Void

    /// A logger that hands its messages to `write`, from whatever task a call is on.
    public init(_ write: @escaping @Sendable (String) -> Void) {
        self.write = write
    }

    /// Which calls are written.
    public struct Filter: Sendable {
        /// What a filter judges by.
        public struct Subject: Sendable {
            /// The host, in lower case; nil where it is not known, as of a typed call that failed without a response.
            public let host: String?
            /// The name of the call: `MyService.CheckStatus` of an endpoint, `MyRequest` of another request; where the logger is a
            /// `ServiceHook`, the call's `CallOptions.operationName`.
            public let operationName: String?
        }

        let isIncluded: @Sendable (Subject) -> Bool

        /// A filter of one's own.
        public init(_ isIncluded: @escaping @Sendable (Subject) -> Bool) {
            self.isIncluded = isIncluded
        }

        /// All calls.
        public static let all = Filter { _ in true }

        /// Calls to these hosts, and to hosts beneath them; where the host is not known, the call is written.
        public static func hosts(_ hosts: String...) -> Filter {
            let hosts = hosts.map { $0.lowercased() }
            return Filter { subject in
                guard let host = subject.host else { return true }
                return hosts.contains { host == $0 || host.hasSuffix(".\($0)") }
            }
        }

        /// Typed calls by name: of a service, such as `MyService`, of one of its endpoints, such as `MyService.CheckStatus`, or of a
        /// request, such as `MyRequest`.
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

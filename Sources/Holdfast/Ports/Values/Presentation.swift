// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// What is known of the request fields that a response answers.
package enum Presentation: Sendable {
    /// Nothing yet: the response is fresh from a transport, or a hook made it.
    case unknown
    /// These went out, or were looked up by.
    case presented(PresentedFields)
    /// Another pipeline answered, and what its hooks presented cannot be seen from outside.
    case hidden

    /// The fields where they are known; made at each reading.
    package var fields: HeaderFields? {
        if case .presented(let presented) = self { presented.fields } else { nil }
    }
}

/// The fields of a request together with those that its transport adds, put together when somebody asks.
///
/// Most calls never do, and a list of lines costs more than all the rest of a call that succeeds.
package enum PresentedFields: Sendable {
    /// The request's own and nothing else.
    case own(URLRequest)
    /// These.
    case fields(HeaderFields)

    /// - Parameter implicit: what the transport adds beneath the hooks.
    init(_ request: URLRequest, implicit: HeaderFields) {
        if implicit.isEmpty {
            self = .own(request)
        } else {
            self = .fields(implicit.merging(HeaderFields(request.allHTTPHeaderFields ?? [:])))
        }
    }

    /// The fields; made at each reading where only the request is known.
    package var fields: HeaderFields {
        switch self {
        case .own(let request): HeaderFields(request.allHTTPHeaderFields ?? [:])
        case .fields(let fields): fields
        }
    }
}

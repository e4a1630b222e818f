// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A response head as a session is told of it.
struct LoadHead: Sendable {
    private let response: Response

    init(_ response: Response) {
        var response = response
        #if !canImport(Darwin)
            // At the end of a 401 with a Basic challenge Foundation on Linux would ask for a credential and, without one,
            // cancel the task on the queue that it stands on, which never returns. An empty list element in front
            // (RFC 9110 §5.6.1.2) changes nothing for those who read the list, and Foundation finds no challenge.
            if response.status == 401, let challenges = response.fields["WWW-Authenticate"] {
                response.fields.removeAll("WWW-Authenticate")
                response.fields.append("WWW-Authenticate", ", " + challenges)
            }
        #endif
        self.response = response
    }

    /// The head; nil without a URL.
    var urlResponse: HTTPURLResponse? { response.makeHTTPURLResponse() }
}

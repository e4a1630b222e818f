// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A transport, and how it is ended.
struct TransferClient {
    let transport: any Transport
    var close: () async -> Void = {}
}

/// The client of this name; nil where there is none.
func makeClient(named name: String) -> TransferClient? {
    switch name {
    case "urlsession":
        return TransferClient(transport: URLSessionTransport())
    case "urlsession-foreign":
        return TransferClient(transport: URLSessionTransport(session: URLSession(configuration: .ephemeral)))
    default:
        #if AsyncHTTPClient
            return makeAsyncHTTPClient(named: name)
        #else
            return nil
        #endif
    }
}

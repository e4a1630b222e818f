// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The clients that the example runs.
enum ClientKind: String, CaseIterable, Sendable {
    case urlSession = "urlsession"
    case asyncHTTPClient = "async-http-client"
    case generated

    /// The trait that must be on for it, where that is off; nil where the client is there.
    var missingTrait: String? {
        switch self {
        case .urlSession:
            return nil
        case .asyncHTTPClient:
            #if AsyncHTTPClient
                return nil
            #else
                return "AsyncHTTPClient"
            #endif
        case .generated:
            #if HTTPTypes
                return nil
            #else
                return "HTTPTypes"
            #endif
        }
    }
}

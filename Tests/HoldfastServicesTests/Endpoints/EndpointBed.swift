// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting

/// A service and endpoints for tests.
enum EndpointBed {
    /// The credential can be changed while calls are under way.
    struct Service: WebService {
        static let shared = ServiceClient(Service(), transport: ScriptedTransport([]))

        var baseURL = URL(filePath: "/")
        var held = HeldAuthorization()
        var authorization: Authorization { get async throws { held.value } }

        init(_ base: String = "https://example.com/api/v1") {
            if let url = URL(string: base) { baseURL = url }
        }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = EndpointBed.Service
        let path = "status"
    }
}

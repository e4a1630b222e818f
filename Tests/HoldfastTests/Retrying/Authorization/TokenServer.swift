// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A server that takes some bearer tokens and refuses all others with 401, and the tokens that are refreshed for it.
final class TokenServer: Sendable {
    struct Refused: Error, Equatable {}

    /// Where the tokens go.
    static let scope: CredentialScope = ["https://api.example"]
    static let url = "https://api.example/a"

    let refreshes = CountWatch()
    /// Held by tests that want many calls to wait for one refresh.
    let gate = CountWatch()
    private let accepted: Mutex<Set<String>>

    init(accepts tokens: Set<String>) {
        accepted = Mutex(tokens)
    }

    func accept(_ tokens: Set<String>) {
        accepted.withLock { $0 = tokens }
    }

    /// What it answers to a request.
    func answer(_ request: URLRequest) -> ScriptedTransport.Step {
        let bearer = request.value(forHTTPHeaderField: "Authorization") ?? ""
        let isAccepted = accepted.withLock { $0.contains(String(bearer.dropFirst("Bearer ".count))) }
        return isAccepted
            ? .respond(200, ["Cache-Control": "max-age=1000"], body: bearer) : .respond(401, body: "refused \(bearer)")
    }

    var transport: ScriptedTransport {
        ScriptedTransport { [self] in answer($0) }
    }

    /// Tokens named t1, t2, … after the number of the refresh that made them.
    func tokens(
        from first: String? = "t0",
        principal: String? = nil,
        waitsAtGate: Bool = false,
        failing failures: Set<Int> = []
    ) -> AuthorizationRefresh {
        .bearer(token: first, for: TokenServer.scope, principal: principal) { [self] _ in
            refreshes.increment()
            let number = refreshes.count
            if waitsAtGate { try await gate.wait(for: 1) }
            if failures.contains(number) { throw Refused() }
            return "t\(number)"
        }
    }

    /// A pipeline that sends to it.
    func pipeline(
        _ authorization: AuthorizationRefresh,
        _ transport: (any Transport)? = nil,
        clock: ManualClock = ManualClock(),
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        _ change: (inout PipelineConfiguration) -> Void = { _ in }
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.authorization = authorization
        change(&configuration)
        return Pipeline(
            transport: transport ?? self.transport,
            cache: cache,
            retrierFactory: retrierFactory,
            configuration: configuration
        )
    }
}

extension ScriptedTransport {
    /// The Authorization fields that were sent, in order.
    var credentials: [String?] { sent.map { $0.request.value(forHTTPHeaderField: "Authorization") } }
}

extension Response {
    /// The body as text.
    var read: String {
        get async throws { String(decoding: try await body.collect(), as: UTF8.self) }
    }
}

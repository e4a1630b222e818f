// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Code that is not ours: it knows URLSession and nothing else.
struct InterceptedClient: Sendable {
    let session: URLSession

    /// A client whose session sends through `pipeline`.
    init(
        _ pipeline: Pipeline,
        matching: (@Sendable (URLRequest) -> Bool)? = nil,
        bodyLimit: Int = 64 << 20,
        delegate: (any URLSessionDelegate)? = nil,
        configure: (URLSessionConfiguration) -> Void = { _ in }
    ) {
        let configuration = URLSessionConfiguration.ephemeral
        configure(configuration)
        session = URLSession(
            configuration: configuration.intercepted(by: pipeline, matching: matching, bodyLimit: bodyLimit),
            delegate: delegate,
            delegateQueue: nil
        )
    }

    func get(_ url: URL) async throws -> (text: String, head: HTTPURLResponse) {
        try await send(URLRequest(url: url))
    }

    func send(_ request: URLRequest) async throws -> (text: String, head: HTTPURLResponse) {
        let (data, response) = try await session.data(for: request)
        guard let head = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return (String(decoding: data, as: UTF8.self), head)
    }
}

extension RetryRules {
    /// Four attempts without a noticeable wait.
    static let atOnce: RetryRules = {
        let quick = Backoff(base: .milliseconds(1), cap: .milliseconds(2))
        var rules = RetryRules(backoff: quick, maxAttempts: 4)
        rules.throttlingBackoff = quick
        return rules
    }()
}

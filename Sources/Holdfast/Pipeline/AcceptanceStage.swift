// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Judges the final response between the `.message` hooks and the `.call` hooks.
struct AcceptanceStage<Next: Exchanging>: Exchanging {
    let next: Next

    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response {
        guard let acceptance = context.options.acceptance else { return try await next.exchange(request, &context) }
        let verdict = Verdict()
        context.verdict = verdict
        defer { context.verdict = nil }
        do {
            var response = try await next.exchange(request, &context)
            try await acceptance.judge(&response)
            await verdict.decide(true)
            return response
        } catch {
            await verdict.decide(false)
            throw error
        }
    }
}

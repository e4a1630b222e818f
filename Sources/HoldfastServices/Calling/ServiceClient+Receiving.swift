// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

extension ServiceClient {
    /// Checks and decodes a response within the chain, and remembers the result.
    func acceptance<R: Request>(
        of request: R,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) -> Acceptance {
        var acceptance = Acceptance { response in
            // A decoded value stays valid for the whole call, unless a hook replaced the response.
            if notes.value(of: response) != nil { return }
            try await take(&response, request: request, deadline: deadline, notes: notes)
        }
        acceptance.judgesAttempts = request.options.retrierFactory?.judgesAttempts ?? judgesAttempts
        acceptance.judgeRefresh = { response in
            if let request = request as? any ContentJudging {
                try await request.judge(&response)
            } else if !request.acceptedStatusCodes.contains(response.status.rawValue) {
                // Custom code of the request may be meant to see the content of one response only.
                throw ServiceError.refused(response, expected: request.acceptedStatusCodes)
            }
        }
        return acceptance
    }

    /// The result: what was decoded within the chain, unless a hook above replaced the response.
    func value<R: Request>(
        of response: inout Response,
        request: R,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) async throws -> R.Result {
        if let value = notes.value(of: response) { return value }
        return try await take(&response, request: request, deadline: deadline, notes: notes)
    }

    @discardableResult
    private func take<R: Request>(
        _ response: inout Response,
        request: R,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) async throws -> R.Result {
        let value: R.Result
        do {
            value = try await received(&response, request: request, deadline: deadline)
        } catch {
            notes.refused(response)
            throw error
        }
        notes.decoded(value, response: response)
        return value
    }

    /// Reads and decodes a response within the call's time.
    private func received<R: Request>(
        _ response: inout Response,
        request: R,
        deadline: CallDeadline?
    ) async throws -> R.Result {
        let arrived = response
        let (result, taken) = try await takingContent(
            of: arrived,
            until: deadline,
            on: pipeline.configuration.clock
        ) { () -> (Result<R.Result, any Error>, Response) in
            var taken = arrived
            do {
                return (.success(try await request.receive(&taken)), taken)
            } catch {
                return (.failure(error), taken)
            }
        }
        response = taken
        return try result.get()
    }
}

/// A request that can check a response without consuming it.
protocol ContentJudging: Request {
    /// Throws if the response would be refused; leaves a body that can be read.
    func judge(_ response: inout Response) async throws
}

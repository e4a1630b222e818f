// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

func received(at time: Timestamp) throws -> StoredResponse {
    let fields: HeaderFields = [
        .cacheControl: "max-age=60, stale-while-revalidate=30",
        .eTag: "\"v1\"",
    ]
    return StoredResponse(
        target: try TargetURI("https://example.com/forecast"),
        head: ResponseHead(status: .ok, fields: fields),
        requestTime: time,
        responseTime: time
    )
}

func decision(on stored: StoredResponse, after seconds: Int) -> ReuseDecision {
    ReuseDecision.decide(
        request: RequestHead(target: stored.target),
        candidates: [stored],
        directive: .default,
        now: stored.responseTime + .seconds(seconds),
        options: .private,
        secret: []
    )
}

func question(about stored: StoredResponse) -> RequestHead {
    RequestHead(target: stored.target, fields: Validation.conditionalFields(for: [stored]))
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An origin whose answers are random, and the same again for the same seed, request and number.
struct ComparedOrigin: Sendable {
    let seed: UInt64
    /// Whether answers take time. Then none may be used while it is revalidated: what takes time in the background would race with
    /// the caller.
    let takesTime: Bool

    func answer(_ request: URLRequest, _ number: Int) -> ScriptedTransport.Step {
        var random = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
        let path = request.url?.path ?? ""
        // A redirect that is used while it is revalidated would have the next hop race with what goes on in the background.
        var fields = fields(mayRevalidate: !takesTime && path != "/moved", using: &random)
        if request.value(forHTTPHeaderField: "If-None-Match") != nil, Int.random(in: 0..<3, using: &random) > 0 {
            return delayed(.respond(304, fields), using: &random)
        }
        var status = path == "/moved" ? 301 : 200
        switch Int.random(in: 0..<16, using: &random) {
        case 0: status = 404
        case 1: status = 503
        case 2: return .fail(progress: .bodySent)
        case 3: status = 204
        default: break
        }
        if status == 301 { fields["Location"] = Bool.random(using: &random) ? "/a" : "/b" }
        let body = status == 204 ? "" : "\(path) \(number)"
        return delayed(.respond(status, fields, body: body), using: &random)
    }

    private func delayed(_ step: ScriptedTransport.Step, using random: inout SeededGenerator) -> ScriptedTransport.Step
    {
        guard takesTime, Bool.random(using: &random) else { return step }
        return step.delayed(by: .milliseconds(Int.random(in: 1...1_500, using: &random)))
    }

    private func fields(mayRevalidate: Bool, using random: inout SeededGenerator) -> HeaderFields {
        var fields: HeaderFields = [:]
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        fields["Cache-Control"] = ComparedStep.pick(
            [
                "max-age=60", "max-age=60", "max-age=10", "max-age=600, private", "max-age=5, s-maxage=60", "public",
                "max-age=60, must-revalidate", "max-age=60, immutable", "no-cache", "no-store", "max-age=0", nil,
                "max-age=60, no-cache=\"x-other\"",
                mayRevalidate ? "max-age=2, stale-while-revalidate=60" : "max-age=2",
                "max-age=2, stale-if-error=60",
            ],
            using: &random
        )
        if chance(3) {
            fields["Vary"] = ComparedStep.pick(
                ["X-Tenant", "Accept-Language", "x-tenant, Accept-Language", "Cookie", "*", "X-Never"],
                using: &random
            )
        }
        if chance(2) { fields["ETag"] = "\"e\"" }
        if chance(4) { fields["Age"] = ComparedStep.pick(["0", "3", "59", "100", "x"], using: &random) }
        if chance(3) {
            fields["Date"] = ComparedStep.pick(
                [
                    "Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:00 GMT", "Tue, 14 Nov 2023 22:20:20 GMT",
                    "no date",
                ],
                using: &random
            )
        }
        if chance(6) { fields["Expires"] = "Tue, 14 Nov 2023 22:30:00 GMT" }
        if chance(4) { fields["Last-Modified"] = "Mon, 13 Nov 2023 22:13:20 GMT" }
        if chance(4) {
            fields["Retry-After"] = ComparedStep.pick(["30", "5", "Tue, 14 Nov 2023 22:14:00 GMT"], using: &random)
        }
        if chance(6) { fields["No-Vary-Search"] = ComparedStep.pick(["params=(\"u\")", "key-order"], using: &random) }
        if chance(8) { fields["Content-Encoding"] = "gzip" }
        return fields
    }
}

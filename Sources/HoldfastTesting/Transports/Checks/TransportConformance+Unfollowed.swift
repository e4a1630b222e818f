// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

extension TransportConformance {
    static let unfollowedChecks: [Check] =
        [
            Check("redirects are handed up, never followed") { run in
                let origin = try await run.origin { request in
                    guard let status = Int(request.path.dropFirst()) else { return LoopbackReply(body: "there") }
                    return LoopbackReply(status, fields: [("Location", "/there")], body: "moved")
                }
                let transport = try await run.transport()
                let statuses = [301, 302, 303, 307, 308]
                for status in statuses {
                    for method in ["GET", "POST"] {
                        let response = try await transport.send(origin.url("/\(status)"), method)
                        run.equal(response.status.rawValue, status, "the status")
                        run.equal(response.fields["Location"], "/there", "Location with \(status)")
                        let expected = run.capabilities.handsUpRedirectBodies ? "moved" : ""
                        run.equal(try await response.text(), expected, "the body with \(status) to \(method)")
                    }
                }
                run.equal(origin.requests.count, 2 * statuses.count, "requests")
            },
            Check("a redirect without Location is a response as any other") { run in
                let origin = try await run.origin { _ in LoopbackReply(302, body: "where") }
                let response = try await run.transport().send(origin.url("/"))
                run.equal(response.status, 302, "the status")
                let body = try await response.text()
                let isRight = body == "where" || body.isEmpty && !run.capabilities.handsUpBodiesWithoutLocation
                run.check(isRight, "the body is \(body)")
                run.equal(origin.requests.count, 1, "requests")
            },
        ]
        + ["Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "Bearer"].map { challenge in
            Check("a 401 is handed up, no credential is sent: \(challenge)") { run in
                let origin = try await run.origin { _ in
                    LoopbackReply(401, fields: [("WWW-Authenticate", challenge)], body: "who")
                }
                let response = try await run.transport().send(origin.url("/"))
                run.equal(response.status, 401, "the status")
                run.equal(response.fields["WWW-Authenticate"], challenge, "the challenge")
                let body = try await response.text()
                let isRight = body == "who" || body.isEmpty && !run.capabilities.handsUpChallengeBodies
                run.check(isRight, "the body is \(body)")
                run.equal(origin.requests.count, 1, "requests")
                run.equal(origin.requests.first?.values(of: "Authorization"), [], "the credentials that arrived")
            }
        }
}

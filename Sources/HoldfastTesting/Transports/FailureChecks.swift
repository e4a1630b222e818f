// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportConformance {
    static let failureChecks: [Check] = [
        Check("a connection that ends before a request is an error with correct progress", versions: [.http1]) { run in
            for opening in [LoopbackOpening.close, .reset] {
                let origin = try await run.origin(opening: { _ in opening }, handler: { _ in LoopbackReply() })
                // The client may see the reset while it is still connecting.
                try await expectFailure("POST", at: origin, run: run, codes: [.connectionLost, .connect])
            }
        },
        Check("a connection that ends during a request is an error with correct progress", versions: [.http1]) { run in
            for resetting in [true, false] {
                let origin = try await run.origin(
                    opening: { _ in .breaking(afterBytes: 40, resetting: resetting) },
                    handler: { _ in LoopbackReply() }
                )
                try await expectFailure("POST", at: origin, run: run)
            }
        },
        Check("an exchange that breaks during the request body is an error with correct progress") { run in
            try await run.withUnfinishedBodies { body in
                for resetting in [true, false] {
                    let origin = try await run.origin(
                        intake: { _ in .breaking(after: 1 << 20, resetting: resetting) },
                        handler: { _ in LoopbackReply() }
                    )
                    let transport = try await run.transport()
                    let error = await run.failure("a request that the server did not accept") {
                        "\(try await transport.send(origin.url("/"), method: "POST", body: body).status)"
                    }
                    try await expectHonesty(of: error, at: origin, run: run)
                }
            }
        },
        Check("an exchange that breaks before the head is an error with correct progress") { run in
            for step in [LoopbackReply.Step.reset, .close] {
                for method in ["GET", "POST"] {
                    let origin = try await run.origin { _ in LoopbackReply(before: [step]) }
                    try await expectFailure(method, at: origin, run: run)
                    run.equal(origin.requests.count, to: 1, for: "requests with \(method)")
                }
            }
        },
        Check("a response that is not HTTP is an error with correct progress", versions: [.http1]) { run in
            let origin = try await run.origin { _ in LoopbackReply(before: [.raw("NONSENSE\r\n\r\n"), .close]) }
            try await expectFailure("POST", at: origin, run: run, codes: [.protocolError, .connectionLost])
        },
        Check(
            "a reused connection that breaks before the head is an error, and a POST is sent once",
            versions: [.http1]
        ) { run in
            let origin = try await run.origin { request in
                request.path == "/first" ? LoopbackReply(body: "first") : LoopbackReply(before: [.reset])
            }
            let transport = try await run.transport()
            run.equal(try await transport.send(origin.url("/first")).text(), to: "first", for: "the first body")
            let error = await run.failure("a broken exchange") {
                "\(try await transport.send(origin.url("/second"), method: "POST", body: .data(.init("x".utf8))).status)"
            }
            try await expectHonesty(of: error, at: origin, run: run)
            let second = origin.requests.filter { $0.path == "/second" }
            run.equal(second.count, to: 1, for: "requests")
            let isReused = second.first?.connection == origin.requests.first?.connection
            if run.capabilities.reportsConnectionReuse {
                run.equal(error?.connectionReused, to: isReused, for: "connectionReused")
            } else if !isReused {
                run.equal(error?.connectionReused, to: false, for: "connectionReused")
            }
        },
    ]

    static let brokenBodyChecks: [Check] = [
        ("reset before its first byte", LoopbackReply.Framing.length(100_000), [.reset], true),
        ("reset in the middle", .length(100_000), [.pattern(1_000), .reset], true),
        ("shorter than Content-Length", .length(100_000), [.pattern(99_999), .close], true),
        ("without any byte although Content-Length says more", .length(100_000), [.close], true),
        ("in chunks, reset", .chunked, [.pattern(1_000), .reset], true),
        ("in chunks, without the last one", .chunked, [.pattern(1_000), .close], true),
        ("until close, reset", .untilClose, [.pattern(1_000), .reset], false),
    ].map { (name: String, framing: LoopbackReply.Framing, steps: [LoopbackReply.Step], isOfBoth: Bool) in
        Check("a body \(name) is never taken for complete", versions: isOfBoth ? [.http1, .http2] : [.http1]) { run in
            let origin = try await run.origin { request in
                request.path == "/next"
                    ? LoopbackReply(body: request.path) : LoopbackReply(framing: framing, steps: steps)
            }
            let transport = try await run.transport()
            let error = await run.failure("a broken body") {
                "\(try await transport.send(origin.url("/"), method: "POST").body.collect().count) bytes"
            }
            expectAnswered(error, run: run)
            if let error {
                run.check([.connectionLost, .protocolError].contains(error.code), or: "the code is \(error.code)")
            }
            run.equal(origin.requests.count, to: 1, for: "requests")
            try await expectNext(transport, at: origin, run: run)
        }
    }

    /// Sends a request that cannot succeed.
    private static func expectFailure(
        _ method: String,
        at origin: any LoopbackOrigin,
        run: TransportRun,
        codes: [ServiceError.Code] = [.connectionLost]
    ) async throws {
        let transport = try await run.transport()
        let error = await run.failure("a broken exchange") {
            let body = method == "GET" ? RequestBody.none : .data(.init("content".utf8))
            return "\(try await transport.send(origin.url("/"), method: method, body: body).status)"
        }
        if let error { run.check(codes.contains(error.code), or: "the code of \(method) is \(error.code): \(error)") }
        run.check(error?.connectionReused != true, or: "a new connection was reported as reused")
        try await expectHonesty(of: error, at: origin, run: run)
    }

    /// The error does not deny what the origin has received.
    private static func expectHonesty(
        of error: ServiceError?,
        at origin: any LoopbackOrigin,
        run: TransportRun
    ) async throws {
        guard let error else { return }
        let heads = try await origin.heads(atLeast: 0)
        run.check(error.progress != nil, or: "the error has no progress")
        if !heads.isEmpty {
            run.check(error.progress != .notSent, or: "a request arrived, but the progress is notSent")
        }
        run.check(
            error.progress.map { $0 < .headReceived } ?? true,
            or: "no head arrived, but the progress is \(text(error.progress))"
        )
    }

    /// A transport that returns a response only when it is complete may not have seen the head of a broken one.
    static func expectAnswered(_ error: ServiceError?, run: TransportRun) {
        guard let error else { return }
        let least = run.capabilities.readAhead == .whole ? TransportProgress.headSent : .headReceived
        run.check(error.progress.map { $0 >= least } ?? false, or: "the progress is \(text(error.progress))")
    }

    private static func text(_ progress: TransportProgress?) -> String {
        progress.map { "\($0)" } ?? "missing"
    }
}

extension TransportConformance {
    static let refusalChecks: [Check] = [
        Check("a refused connection is .connect, and nothing was sent") { run in
            let port = try LoopbackServer.refusingPort()
            let transport = try await run.transport()
            guard let url = URL(string: "http://127.0.0.1:\(port)/") else { return }
            let error = await run.failure("a refused connection") {
                "\(try await transport.send(url, method: "POST", body: .data(Data("x".utf8))).status)"
            }
            run.equal(error?.code, to: .connect, for: "the code")
            run.equal(error?.progress, to: .notSent, for: "the progress")
        },
        Check("an unusable URL is an error, and nothing was sent") { run in
            let transport = try await run.transport()
            for text in ["http:///path", "http://", "ftp://127.0.0.1/x", "mailto:a", "/relative", ""] {
                var request = URLRequest(url: URL(fileURLWithPath: "/"))
                request.url = URL(string: text)
                let sent = request
                let error = await run.failure("the URL \u{201C}\(text)\u{201D}") {
                    "\(try await transport.send(sent, body: .none, context: CallContext()).status)"
                }
                if let error {
                    run.equal(error.progress, to: .notSent, for: "the progress with the URL \u{201C}\(text)\u{201D}")
                    let codes: [ServiceError.Code] = [.badRequest, .unsupported, .resolve, .connect]
                    run.check(
                        codes.contains(error.code),
                        or: "the code with the URL \u{201C}\(text)\u{201D} is \(error.code)"
                    )
                }
            }
        },
        Check("the attempt's deadline ends the wait for the head with .timeout, if the transport enforces it") { run in
            let origin = try await run.origin { $0.path == "/" ? .never : LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            guard transport.enforcesDeadline else { return }
            let clock = SystemClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .milliseconds(300)))
            let error = await run.failure("a deadline") {
                "\(try await transport.send(origin.url("/"), method: "POST", context: context).status)"
            }
            run.equal(error?.code, to: .timeout, for: "the code")
            let heads = try await origin.heads(atLeast: 0)
            run.check(
                heads.isEmpty || error?.progress != .notSent,
                or: "a request arrived, but the progress is notSent"
            )
            try await expectNext(transport, at: origin, run: run)
        },
        Check("an attempt whose deadline has passed sends nothing, if the transport enforces it") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            guard transport.enforcesDeadline else { return }
            let clock = SystemClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(-1)))
            let error = await run.failure("a deadline that has passed") {
                "\(try await transport.send(origin.url("/"), context: context).status)"
            }
            run.equal(error?.code, to: .timeout, for: "the code")
            run.equal(error?.progress, to: .notSent, for: "the progress")
            try await expectNext(transport, at: origin, run: run)
            run.equal(origin.requests.map(\.path), to: ["/next"], for: "the requests that arrived")
        },
        Check("the deadline has no effect once the head has arrived") { run in
            let gate = LoopbackGate()
            let origin = try await run.origin { _ in
                LoopbackReply(framing: .chunked, steps: [.send("a"), .pause(gate), .send("b")])
            }
            let transport = try await run.transport()
            if run.capabilities.readAhead == .whole { return }
            let clock = ManualClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
            let response = try await transport.send(origin.url("/"), context: context)
            clock.advance(by: .seconds(100))
            gate.open()
            run.equal(try await response.text(), to: "ab", for: "the body")
        },
    ]
}

extension TransportConformance {
    static let unfollowedChecks: [Check] =
        [
            Check("redirects are returned, never followed") { run in
                let origin = try await run.origin { request in
                    guard let status = Int(request.path.dropFirst()) else { return LoopbackReply(body: "there") }
                    return LoopbackReply(status, fields: [("Location", "/there")], body: "moved")
                }
                let transport = try await run.transport()
                let statuses = [301, 302, 303, 307, 308]
                for status in statuses {
                    for method in ["GET", "POST"] {
                        let response = try await transport.send(origin.url("/\(status)"), method: method)
                        run.equal(response.status.rawValue, to: status, for: "the status")
                        run.equal(response.fields["Location"], to: "/there", for: "Location with \(status)")
                        let expected = run.capabilities.returnsRedirectBodies ? "moved" : ""
                        run.equal(try await response.text(), to: expected, for: "the body with \(status) to \(method)")
                    }
                }
                run.equal(origin.requests.count, to: 2 * statuses.count, for: "requests")
            },
            Check("a redirect without Location is a response like any other") { run in
                let origin = try await run.origin { _ in LoopbackReply(302, body: "where") }
                let response = try await run.transport().send(origin.url("/"))
                run.equal(response.status, to: 302, for: "the status")
                let body = try await response.text()
                let isRight = body == "where" || body.isEmpty && !run.capabilities.returnsBodiesWithoutLocation
                run.check(isRight, or: "the body is \(body)")
                run.equal(origin.requests.count, to: 1, for: "requests")
            },
        ]
        + ["Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "Bearer"].map { challenge in
            Check("a 401 is returned, and no credential is sent: \(challenge)") { run in
                let origin = try await run.origin { _ in
                    LoopbackReply(401, fields: [("WWW-Authenticate", challenge)], body: "who")
                }
                let response = try await run.transport().send(origin.url("/"))
                run.equal(response.status, to: 401, for: "the status")
                run.equal(response.fields["WWW-Authenticate"], to: challenge, for: "the challenge")
                let body = try await response.text()
                let isRight = body == "who" || body.isEmpty && !run.capabilities.returnsChallengeBodies
                run.check(isRight, or: "the body is \(body)")
                run.equal(origin.requests.count, to: 1, for: "requests")
                run.equal(
                    origin.requests.first?.values(of: "Authorization"),
                    to: [],
                    for: "the credentials that arrived"
                )
            }
        }
}

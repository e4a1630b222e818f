// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportConformance {
    static let refusalChecks: [Check] = [
        Check("a refused connection is .connect, and nothing was sent") { run in
            let port = try LoopbackServer.refusingPort()
            let transport = try await run.transport()
            guard let url = URL(string: "http://127.0.0.1:\(port)/") else { return }
            let error = await run.failure("a refused connection") {
                "\(try await transport.send(url, "POST", body: .data(Data("x".utf8))).status)"
            }
            run.equal(error?.code, .connect, "the code")
            run.equal(error?.progress, .notSent, "the progress")
        },
        Check("a URL that cannot be sent to is an error, and nothing was sent") { run in
            let transport = try await run.transport()
            for text in ["http:///path", "http://", "ftp://127.0.0.1/x", "mailto:a", "/relative", ""] {
                var request = URLRequest(url: URL(fileURLWithPath: "/"))
                request.url = URL(string: text)
                let sent = request
                let error = await run.failure("the URL \u{201C}\(text)\u{201D}") {
                    "\(try await transport.send(sent, body: .none, context: CallContext()).status)"
                }
                if let error {
                    run.equal(error.progress, .notSent, "the progress with the URL \u{201C}\(text)\u{201D}")
                    let codes: [ServiceError.Code] = [.badRequest, .unsupported, .resolve, .connect]
                    run.check(
                        codes.contains(error.code),
                        "the code with the URL \u{201C}\(text)\u{201D} is \(error.code)"
                    )
                }
            }
        },
        Check("the attempt's deadline ends the wait for a head with .timeout, where the transport enforces it") { run in
            let origin = try await run.origin { $0.path == "/" ? .never : LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            guard transport.enforcesDeadline else { return }
            let clock = SystemClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .milliseconds(300)))
            let error = await run.failure("a deadline") {
                "\(try await transport.send(origin.url("/"), "POST", context: context).status)"
            }
            run.equal(error?.code, .timeout, "the code")
            let heads = try await origin.heads(atLeast: 0)
            run.check(heads.isEmpty || error?.progress != .notSent, "a request arrived, but the progress is notSent")
            try await expectNext(transport, origin, run)
        },
        Check("a deadline that has passed sends nothing, where the transport enforces it") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            guard transport.enforcesDeadline else { return }
            let clock = SystemClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(-1)))
            let error = await run.failure("a deadline that has passed") {
                "\(try await transport.send(origin.url("/"), context: context).status)"
            }
            run.equal(error?.code, .timeout, "the code")
            run.equal(error?.progress, .notSent, "the progress")
            try await expectNext(transport, origin, run)
            run.equal(origin.requests.map(\.path), ["/next"], "the requests that arrived")
        },
        Check("the deadline has no say once the head is there") { run in
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
            run.equal(try await response.text(), "ab", "the body")
        },
    ]
}

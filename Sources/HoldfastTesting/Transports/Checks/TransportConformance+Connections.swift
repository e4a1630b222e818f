// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

extension TransportConformance {
    static let connectionChecks: [Check] = [
        Check("exchanges at the same time do not mix") { run in
            let gate = LoopbackGate()
            let count = 16
            let origin = try await run.origin { request in
                LoopbackReply(
                    fields: [("X-Target", request.target)],
                    framing: .chunked,
                    steps: [.send("\(request.target):"), .pause(gate), .send(request.body)]
                )
            }
            let transport = try await run.transport()
            let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for number in 0..<count {
                    group.addTask {
                        let response = try await transport.send(
                            origin.url("/\(number)"),
                            "POST",
                            body: .data(.init("content \(number)".utf8))
                        )
                        let target = response.fields["X-Target"] ?? ""
                        return (number, "\(target) \(try await response.text())")
                    }
                }
                // A client may have fewer connections than exchanges, so not all are waited for.
                try await gate.reached()
                gate.open()
                var answers: [Int: String] = [:]
                for try await (number, answer) in group { answers[number] = answer }
                return answers
            }
            for number in 0..<count {
                run.equal(answers[number], "/\(number) /\(number):content \(number)", "the answer to \(number)")
            }
            run.equal(origin.requests.count, count, "requests")
        },
        Check("a connection is used again once its body is read, where the transport does so") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            for number in 0..<3 {
                run.equal(try await transport.send(origin.url("/\(number)")).text(), "/\(number)", "the body")
            }
            guard run.capabilities.reusesConnections else { return }
            run.equal(Set(origin.requests.map(\.connection)).count, 1, "connections")
        },
        Check("a connection that the server ends with its answer is not used again", versions: [.http1]) { run in
            let origin = try await run.origin { request in
                var reply = LoopbackReply(fields: [("Connection", "close")], body: request.path)
                reply.closes = true
                return reply
            }
            let transport = try await run.transport()
            for number in 0..<3 {
                let method = number == 1 ? "POST" : "GET"
                run.equal(try await transport.send(origin.url("/\(number)"), method).text(), "/\(number)", "the body")
            }
            run.equal(origin.requests.count, 3, "requests")
        },
        Check("what was not read of a body is never taken for the next response") { run in
            let origin = try await run.origin { request in
                request.path == "/long"
                    ? LoopbackReply(framing: .length(4 << 20), steps: [.pattern(4 << 20)])
                    : LoopbackReply(body: request.path)
            }
            let transport = try await run.transport()
            for _ in 0..<5 {
                var response: Response? = try await transport.send(origin.url("/long"))
                var chunks = response?.body.makeAsyncIterator()
                _ = try await chunks?.next()
                response = nil
                chunks = nil
                try await expectNext(transport, origin, run)
            }
        },
    ]
}

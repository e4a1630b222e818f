// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastStorage

extension TransportConformance {
    static let cancellationChecks: [Check] = [
        Check("a call that is cancelled before it begins sends nothing") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await transport.send(origin.url("/")).status.rawValue
            }
            await expectCancellation(of: task, run)
            try await expectNext(transport, at: origin, run: run)
            run.equal(origin.requests.map(\.path), to: ["/next"], for: "the requests that arrived")
        },
        Check("cancelling while the request body is being sent ends the exchange") { run in
            try await run.withUnfinishedBodies { body in
                let gate = LoopbackGate()
                let origin = try await run.origin(
                    intake: { $0.path == "/" ? .holding(at: gate) : .measure },
                    handler: { LoopbackReply(body: $0.path) }
                )
                let transport = try await run.transport()
                let task = Task {
                    try await transport.send(origin.url("/"), method: "POST", body: body).status.rawValue
                }
                try await origin.heads(atLeast: 1)
                task.cancel()
                await expectCancellation(of: task, run)
                // Bytes in the sockets hide the end of the connection until they are read.
                gate.open()
                let end = try await origin.exchangeEnds(atLeast: 1)[0]
                run.equal(end.endedBy, to: .peer, for: "who ended the exchange")
                run.equal(origin.requests.count, to: 0, for: "requests that arrived completely")
                try await expectNext(transport, at: origin, run: run)
            }
        },
        Check("cancelling while the request body waits for more bytes ends the exchange") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            let waiting = CountWatch()
            let task = Task {
                let body = RequestBody.factory { StalledSource(waiting) }
                return try await transport.send(origin.url("/"), method: "POST", body: body).status.rawValue
            }
            try await waiting.wait(for: 1)
            task.cancel()
            await expectCancellation(of: task, run)
            try await expectNext(transport, at: origin, run: run)
            run.equal(origin.requests.map(\.path), to: ["/next"], for: "the requests that arrived completely")
        },
        Check("cancelling while waiting for the head ends the exchange") { run in
            let origin = try await run.origin { $0.path == "/" ? .never : LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            let task = Task { try await transport.send(origin.url("/")).status.rawValue }
            try await origin.requests(atLeast: 1)
            task.cancel()
            await expectCancellation(of: task, run)
            run.equal(try await origin.exchangeEnds(atLeast: 1)[0].endedBy, to: .peer, for: "who ended the exchange")
            try await expectNext(transport, at: origin, run: run)
        },
        Check("cancelling in the middle of the body ends the exchange") { run in
            let gate = LoopbackGate()
            let origin = try await run.origin { request in
                request.path == "/" ? unfinished(gate) : LoopbackReply(body: request.path)
            }
            let transport = try await run.transport()
            let begun = CountWatch()
            let task = Task {
                var chunks = try await transport.send(origin.url("/")).body.makeAsyncIterator()
                var count = 0
                while let chunk = try await chunks.next() {
                    count += chunk.count
                    begun.increment()
                }
                return count
            }
            if run.capabilities.readAhead == .whole { try await gate.reached() } else { try await begun.wait(for: 1) }
            task.cancel()
            await expectCancellation(of: task, run)
            run.equal(try await origin.exchangeEnds(atLeast: 1)[0].endedBy, to: .peer, for: "who ended the exchange")
            try await expectNext(transport, at: origin, run: run)
        },
        Check("dropping an unread body ends the exchange") { run in
            try await unread(run) { _ in }
        },
        Check("cancelling a body ends the exchange, and reading it throws CancellationError") { run in
            try await unread(run) { body in
                body.discard()
                body.discard()
                do {
                    let bytes = try await body.collect()
                    run.report("a cancelled body gave \(bytes.count) bytes")
                } catch is CancellationError {
                } catch {
                    run.report("a cancelled body threw \(error)")
                }
            }
        },
    ]

    private static func unfinished(_ gate: LoopbackGate) -> LoopbackReply {
        LoopbackReply(framing: .length(100_000), steps: [.pattern(1_000), .pause(gate), .pattern(99_000)])
    }

    /// Gives up a body that the server has not finished.
    private static func unread(_ run: TransportRun, by giveUp: (ResponseBody) async throws -> Void) async throws {
        if run.capabilities.readAhead == .whole { return }
        let gate = LoopbackGate()
        let origin = try await run.origin { request in
            request.path == "/" ? unfinished(gate) : LoopbackReply(body: request.path)
        }
        let transport = try await run.transport()
        var response: Response? = try await transport.send(origin.url("/"))
        try await gate.reached()
        if let body = response?.body { try await giveUp(body) }
        response = nil
        run.equal(try await origin.exchangeEnds(atLeast: 1)[0].endedBy, to: .peer, for: "who ended the exchange")
        try await expectNext(transport, at: origin, run: run)
    }

    private static func expectCancellation(of task: Task<Int, any Error>, _ run: TransportRun) async {
        switch await task.result {
        case .success(let value): run.report("a cancelled call gave \(value)")
        case .failure(is CancellationError): break
        case .failure(let error): run.report("a cancelled call threw \(error), not CancellationError")
        }
    }

    /// The transport still works.
    static func expectNext(_ transport: any Transport, at origin: any LoopbackOrigin, run: TransportRun) async throws {
        run.equal(
            try await transport.send(origin.url("/next")).text(),
            to: "/next",
            for: "the response to the next request"
        )
    }
}

/// A source that yields some bytes and then waits forever.
private final class StalledSource: ByteSource {
    private let waiting: CountWatch
    private let never = CountWatch()
    private let first = ByteGauge()

    init(_ waiting: CountWatch) { self.waiting = waiting }

    func next() async throws -> ByteChunk? {
        if first.count == 0 {
            first.add(1_000)
            return TransferPattern.bytes(1_000, at: 0)
        }
        waiting.increment()
        try await never.wait(for: 1)
        return nil
    }

    func cancel() { never.increment() }
}

extension TransportConformance {
    static let connectionChecks: [Check] = [
        Check("concurrent exchanges do not mix") { run in
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
                            method: "POST",
                            body: .data(.init("content \(number)".utf8))
                        )
                        let target = response.fields["X-Target"] ?? ""
                        return (number, "\(target) \(try await response.text())")
                    }
                }
                // A client may have fewer connections than exchanges, so this does not wait for all of them.
                try await gate.reached()
                gate.open()
                var answers: [Int: String] = [:]
                for try await (number, answer) in group { answers[number] = answer }
                return answers
            }
            for number in 0..<count {
                run.equal(
                    answers[number],
                    to: "/\(number) /\(number):content \(number)",
                    for: "the response to \(number)"
                )
            }
            run.equal(origin.requests.count, to: count, for: "requests")
        },
        Check("a connection is reused once its body has been read, if the transport reuses connections") { run in
            let origin = try await run.origin { LoopbackReply(body: $0.path) }
            let transport = try await run.transport()
            for number in 0..<3 {
                run.equal(try await transport.send(origin.url("/\(number)")).text(), to: "/\(number)", for: "the body")
            }
            guard run.capabilities.reusesConnections else { return }
            run.equal(Set(origin.requests.map(\.connection)).count, to: 1, for: "connections")
        },
        Check("a connection that the server closes after its response is not reused", versions: [.http1]) { run in
            let origin = try await run.origin { request in
                var reply = LoopbackReply(fields: [("Connection", "close")], body: request.path)
                reply.closes = true
                return reply
            }
            let transport = try await run.transport()
            for number in 0..<3 {
                let method = number == 1 ? "POST" : "GET"
                run.equal(
                    try await transport.send(origin.url("/\(number)"), method: method).text(),
                    to: "/\(number)",
                    for: "the body"
                )
            }
            run.equal(origin.requests.count, to: 3, for: "requests")
        },
        Check("the unread rest of a body is never taken for the next response") { run in
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
                try await expectNext(transport, at: origin, run: run)
            }
        },
    ]
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

extension TransportConformance {
    static let longBodyChecks: [Check] = [
        Check("a long body under a slow reader is taken in as far as declared, and every byte is right") { run in
            let gauge = ByteGauge()
            let count = run.longBody
            let origin = try await run.origin { request in
                request.path == "/"
                    ? LoopbackReply(framing: .length(count), steps: [.pattern(count, gauge: gauge)])
                    : LoopbackReply(framing: .chunked, steps: [.pattern(1 << 18)])
            }
            let transport = try await run.transport()
            let response = try await transport.send(origin.url("/"))
            if let length = response.body.length { run.equal(length, count, "the length that is known before") }
            var checker = TransferPattern.Checker()
            var chunks = response.body.makeAsyncIterator()
            if let first = try await chunks.next() { checker.read(first) }
            switch run.capabilities.readAhead {
            case .backPressure(let bytes):
                let bound = checker.count + bytes + TransportRun.socketBuffers
                try await pastime(run, transport, origin) { gauge.count > bound }
                run.check(gauge.count <= bound, "\(gauge.count) bytes were taken in when \(checker.count) were read")
            case .spills:
                try await gauge.wait(for: count)
            case .whole:
                run.equal(gauge.count, count, "bytes that were taken in with the head")
            }
            while let chunk = try await chunks.next() { checker.read(chunk) }
            run.equal(checker.count, count, "bytes")
            run.check(checker.isIntact, "other bytes than were sent")
        },
        Check("a long request body goes out as fast as it is taken, or is collected, and every byte is right") { run in
            let gate = LoopbackGate()
            let count = run.longBody
            let origin = try await run.origin(
                intake: { $0.path == "/" ? .holding(at: gate) : .measure },
                handler: { request in
                    request.path == "/"
                        ? LoopbackReply(body: "\(request.bodyLength)")
                        : LoopbackReply(framing: .chunked, steps: [.pattern(1 << 18)])
                }
            )
            let transport = try await run.transport()
            let gauge = ByteGauge()
            let sending = Task {
                let body = RequestBody.factory(length: count) { PatternSource(count, gauge: gauge) }
                return try await transport.send(origin.url("/"), "POST", body: body).text()
            }
            try await origin.heads(atLeast: 1)
            switch run.capabilities.requestStreaming {
            case .backPressure(let bytes):
                let bound = bytes + TransportRun.socketBuffers
                try await pastime(run, transport, origin) { gauge.count > bound }
                run.check(gauge.count <= bound, "\(gauge.count) bytes were read while the server took none")
            case .collects:
                run.equal(gauge.count, count, "bytes that were collected before the head was sent")
            }
            gate.open()
            run.equal(try await sending.value, "\(count)", "the answer")
            guard let arrived = origin.requests.first(where: { $0.path == "/" }) else { return }
            run.equal(arrived.bodyLength, count, "the bytes that arrived")
            run.check(arrived.isPattern, "other bytes arrived than were sent")
        },
    ]

    /// Does other exchanges for a while, so that a transfer that should stand still has time to go on if it does not.
    ///
    /// It is a clock without a clock: a right transport passes however slow the machine, since its transfer stands still for good.
    private static func pastime(
        _ run: TransportRun,
        _ transport: any Transport,
        _ origin: any LoopbackOrigin,
        until isOver: () -> Bool
    ) async throws {
        for _ in 0..<100 where !isOver() {
            _ = try await transport.send(origin.url("/pastime")).body.collect()
        }
    }
}

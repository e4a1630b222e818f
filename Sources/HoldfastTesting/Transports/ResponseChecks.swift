// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportConformance {
    static let responseChecks: [Check] =
        [
            Check("repeated response field lines are kept, or joined, in order") { run in
                let origin = try await run.origin { _ in
                    LoopbackReply(fields: [("X-A", "1"), ("X-B", "b"), ("X-A", "2, 3"), ("x-a", "4")], body: "x")
                }
                let response = try await run.transport().send(origin.url("/"))
                let lines = response.fields.values(of: "X-A")
                run.equal(lines.joined(separator: ", "), to: "1, 2, 3, 4", for: "the lines, joined")
                if run.capabilities.keepsRepeatedLines { run.equal(lines, to: ["1", "2, 3", "4"], for: "the lines") }
                run.equal(response.fields["X-B"], to: "b", for: "the other field")
            },
            Check("Set-Cookie lines are kept, or joined, in order") { run in
                let cookies = ["a=1; Expires=Wed, 09 Jun 2038 10:18:14 GMT; Path=/", "b=2", "c=\"3\"; HttpOnly"]
                let origin = try await run.origin { _ in
                    LoopbackReply(fields: cookies.map { ("Set-Cookie", $0) }, body: "x")
                }
                let response = try await run.transport().send(origin.url("/"))
                let lines = response.fields.values(of: "Set-Cookie")
                run.equal(lines.joined(separator: ", "), to: cookies.joined(separator: ", "), for: "the lines, joined")
                if run.capabilities.keepsRepeatedLines { run.equal(lines, to: cookies, for: "the lines") }
            },
            Check("a response to HEAD has its fields and no body, and the next exchange is correct") { run in
                let origin = try await run.origin { request in
                    LoopbackReply(fields: [("ETag", "\"a\"")], framing: .length(1_000), steps: [.pattern(1_000)])
                }
                let transport = try await run.transport()
                for _ in 0..<2 {
                    let response = try await transport.send(origin.url("/"), method: "HEAD")
                    run.equal(response.status, to: 200, for: "the status")
                    run.equal(response.fields["Content-Length"], to: "1000", for: "Content-Length")
                    run.equal(response.fields["ETag"], to: "\"a\"", for: "ETag")
                    run.equal(try await response.body.collect().count, to: 0, for: "bytes of the body")
                }
                let whole = try await transport.send(origin.url("/"))
                run.equal(try await whole.body.collect().count, to: 1_000, for: "bytes of the body of the next GET")
            },
            Check("204 and 304 have their fields and no body, and the next exchange is correct") { run in
                let origin = try await run.origin { request in
                    switch request.path {
                    case "/204": LoopbackReply(204, fields: [("ETag", "\"a\"")])
                    case "/304": LoopbackReply(304, fields: [("ETag", "\"a\""), ("Cache-Control", "max-age=5")])
                    case "/304-length":
                        LoopbackReply(304, fields: [("ETag", "\"a\""), ("Content-Length", "1000")])
                    default: LoopbackReply(body: "next")
                    }
                }
                let transport = try await run.transport()
                for target in ["/204", "/304", "/304-length"] {
                    let fields = target == "/204" ? [:] : ["If-None-Match": "\"a\""]
                    let response = try await transport.send(origin.url(target), fields: fields)
                    run.equal(
                        response.status.rawValue,
                        to: target == "/204" ? 204 : 304,
                        for: "the status of \(target)"
                    )
                    run.equal(response.fields["ETag"], to: "\"a\"", for: "ETag of \(target)")
                    run.equal(try await response.body.collect().count, to: 0, for: "bytes of the body of \(target)")
                    let next = try await transport.send(origin.url("/next"))
                    run.equal(try await next.text(), to: "next", for: "the body after \(target)")
                }
            },
        ]
        + framings.map { name, framing, bytes in
            let versions: Set<OriginFactory.Version> = framing == .untilClose ? [.http1] : [.http1, .http2]
            return Check("a body of \(bytes) bytes is read to its end: \(name)", versions: versions) { run in
                let steps: [LoopbackReply.Step] = bytes == 0 ? [] : [.pattern(bytes / 3), .pattern(bytes - bytes / 3)]
                let origin = try await run.origin { request in
                    request.path == "/" ? LoopbackReply(framing: framing, steps: steps) : LoopbackReply(body: "next")
                }
                let transport = try await run.transport()
                let response = try await transport.send(origin.url("/"))
                run.equal(response.status, to: 200, for: "the status")
                run.equal(response.contentDecoded, to: false, for: "contentDecoded")
                if let length = response.body.length {
                    run.equal(length, to: bytes, for: "the length known in advance")
                }
                var checker = TransferPattern.Checker()
                for try await chunk in response.body {
                    run.check(!chunk.isEmpty, or: "an empty chunk")
                    checker.read(chunk)
                }
                run.equal(checker.count, to: bytes, for: "bytes")
                run.check(checker.isIntact, or: "bytes other than those sent")
                run.equal(try await transport.send(origin.url("/next")).text(), to: "next", for: "the body after it")
            }
        }
        + [memoryless, statuses, streaming, interim]

    private static let framings: [(String, LoopbackReply.Framing, Int)] = [
        ("Content-Length", .automatic, 0), ("chunked", .chunked, 0), ("until close", .untilClose, 0),
        ("Content-Length", .automatic, 300_000), ("chunked", .chunked, 300_000), ("until close", .untilClose, 300_000),
    ]

    private static let memoryless = Check("an equal request is sent again, without what a response set") { run in
        let origin = try await run.origin { _ in
            LoopbackReply(
                fields: [("Cache-Control", "max-age=600"), ("ETag", "\"a\""), ("Set-Cookie", "a=1; Path=/")],
                body: "x"
            )
        }
        let transport = try await run.transport()
        for _ in 0..<2 { run.equal(try await transport.send(origin.url("/")).text(), to: "x", for: "the body") }
        run.equal(origin.requests.count, to: 2, for: "requests")
        let declared = transport.implicitFields(for: URLRequest(url: origin.url("/")))
        for request in origin.requests {
            for name in ["Cookie", "If-None-Match", "If-Modified-Since"] as [FieldName] {
                let values = request.values(of: name.rawName)
                run.check(
                    values.isEmpty || declared.contains(name),
                    or: "the field \(name.rawName) arrived (\(values)), but was not declared as implicit"
                )
            }
        }
    }

    private static let statuses = Check("every status is returned with its body, even an unusual one") { run in
        let statuses = [200, 201, 202, 203, 206, 226, 299, 300, 400, 403, 404, 410, 418, 429, 451, 499, 500, 503, 599]
        let origin = try await run.origin { request in
            LoopbackReply(Int(request.path.dropFirst()) ?? 200, fields: [("X-A", "a")], body: request.path)
        }
        let transport = try await run.transport()
        for status in statuses {
            let response = try await transport.send(origin.url("/\(status)"))
            run.equal(response.status.rawValue, to: status, for: "the status")
            run.equal(response.fields["X-A"], to: "a", for: "a field with \(status)")
            run.equal(try await response.text(), to: "/\(status)", for: "the body with \(status)")
        }
        run.equal(origin.requests.count, to: statuses.count, for: "requests")
    }

    private static let streaming = Check("the head is returned before the body, and each part as it arrives") { run in
        if run.capabilities.readAhead == .whole { return }
        let (beforeBody, beforeRest) = (LoopbackGate(), LoopbackGate())
        let origin = try await run.origin { _ in
            LoopbackReply(
                framing: .chunked,
                steps: [.pause(beforeBody), .send("first"), .pause(beforeRest), .send("rest")]
            )
        }
        let response = try await run.transport().send(origin.url("/"))
        run.equal(response.status, to: 200, for: "the status")
        beforeBody.open()
        var chunks = response.body.makeAsyncIterator()
        var read: [UInt8] = []
        while read.count < 5, let chunk = try await chunks.next() { read += chunk.array }
        run.equal(String(decoding: read, as: UTF8.self), to: "first", for: "the first part")
        beforeRest.open()
        while let chunk = try await chunks.next() { read += chunk.array }
        run.equal(String(decoding: read, as: UTF8.self), to: "firstrest", for: "the body")
        let after = try await chunks.next()
        run.check(after == nil, or: "a chunk after the end")
    }

    private static let interim = Check("an interim response is reported or dropped, but never returned as the response")
    { run in
        let origin = try await run.origin { _ in
            var reply = LoopbackReply(fields: [("X-A", "final")], body: "body")
            reply.before = [
                .interim(103, fields: [("Link", "</a>; rel=preload")]),
                .interim(103, fields: [("Link", "</b>; rel=preload")]),
            ]
            return reply
        }
        let seen = Mutex<[ResponseHead]>([])
        var options = CallOptions()
        options.onInterimResponse = { head in seen.withLock { $0.append(head) } }
        let response = try await run.transport().send(origin.url("/"), context: CallContext(options: options))
        run.equal(response.status, to: 200, for: "the status")
        run.equal(response.fields["X-A"], to: "final", for: "a field of the response")
        run.check(!response.fields.contains("Link"), or: "a field of an interim response in the final response")
        run.equal(try await response.text(), to: "body", for: "the body")
        let links = seen.withLock { $0.map { "\($0.status.rawValue) \($0.fields["Link"] ?? "")" } }
        let expected = ["103 </a>; rel=preload", "103 </b>; rel=preload"]
        run.equal(links, to: run.capabilities.reportsInterim ? expected : [], for: "the interim responses")
    }
}

extension TransportConformance {
    static let longBodyChecks: [Check] = [
        Check("a long body with a slow reader is read ahead only as declared, and every byte is correct") { run in
            let gauge = ByteGauge()
            let count = run.longBody
            let origin = try await run.origin { request in
                request.path == "/"
                    ? LoopbackReply(framing: .length(count), steps: [.pattern(count, gauge: gauge)])
                    : LoopbackReply(framing: .chunked, steps: [.pattern(1 << 18)])
            }
            let transport = try await run.transport()
            let response = try await transport.send(origin.url("/"))
            if let length = response.body.length { run.equal(length, to: count, for: "the length known in advance") }
            var checker = TransferPattern.Checker()
            var chunks = response.body.makeAsyncIterator()
            if let first = try await chunks.next() { checker.read(first) }
            switch run.capabilities.readAhead {
            case .backPressure(let bytes):
                let bound = checker.count + bytes + TransportRun.socketBuffers
                try await pastime(run, through: transport, at: origin) { gauge.count > bound }
                run.check(
                    gauge.count <= bound,
                    or: "\(gauge.count) bytes had been received when \(checker.count) were read"
                )
            case .spills:
                try await gauge.wait(for: count)
            case .whole:
                run.equal(gauge.count, to: count, for: "bytes received with the head")
            }
            while let chunk = try await chunks.next() { checker.read(chunk) }
            run.equal(checker.count, to: count, for: "bytes")
            run.check(checker.isIntact, or: "bytes other than those sent")
        },
        Check("a long request body is sent as fast as it is accepted, or collected, and every byte is correct") { run in
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
                return try await transport.send(origin.url("/"), method: "POST", body: body).text()
            }
            try await origin.heads(atLeast: 1)
            switch run.capabilities.requestStreaming {
            case .backPressure(let bytes):
                let bound = bytes + TransportRun.socketBuffers
                try await pastime(run, through: transport, at: origin) { gauge.count > bound }
                run.check(gauge.count <= bound, or: "\(gauge.count) bytes were read while the server took none")
            case .collects:
                run.equal(gauge.count, to: count, for: "bytes collected before the head was sent")
            }
            gate.open()
            run.equal(try await sending.value, to: "\(count)", for: "the answer")
            guard let arrived = origin.requests.first(where: { $0.path == "/" }) else { return }
            run.equal(arrived.bodyLength, to: count, for: "the bytes that arrived")
            run.check(arrived.isPattern, or: "the bytes that arrived are not those sent")
        },
    ]

    /// Makes other exchanges for a while, so that a transfer that should stand still has time to continue if it does not.
    ///
    /// This measures time without a clock: a correct transport passes however slow the machine is, since its transfer stands still
    /// forever.
    private static func pastime(
        _ run: TransportRun,
        through transport: any Transport,
        at origin: any LoopbackOrigin,
        until isOver: () -> Bool
    ) async throws {
        for _ in 0..<100 where !isOver() {
            _ = try await transport.send(origin.url("/pastime")).body.collect()
        }
    }
}

extension TransportConformance {
    static let codingChecks: [Check] = [
        Check("a gzip body is decoded and marked as decoded, or returned as received") { run in
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "gzip"), ("ETag", "\"a\"")], bytes: gzipped)
            }
            let response = try await run.transport().send(origin.url("/"), fields: ["Accept-Encoding": "gzip"])
            let isUndone = run.capabilities.undoesContentCodings.contains("gzip")
            run.equal(response.contentDecoded, to: isUndone, for: "contentDecoded")
            run.equal(response.fields["Content-Encoding"], to: "gzip", for: "Content-Encoding")
            if let length = response.body.length {
                run.equal(length, to: isUndone ? plain.count : gzipped.count, for: "the length known in advance")
            }
            run.equal(try await response.body.collect().array, to: isUndone ? plain : gzipped, for: "the body")
        },
        Check("broken gzip ends the body with an error, if the transport decodes it") { run in
            guard run.capabilities.undoesContentCodings.contains("gzip") else { return }
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "gzip")], bytes: broken)
            }
            let transport = try await run.transport()
            let error = await run.failure("broken gzip") {
                "\(try await transport.send(origin.url("/")).body.collect().count) bytes"
            }
            expectAnswered(error, run: run)
        },
        Check("a gzip body is cached once, and is correct the second time") { run in
            let origin = try await run.origin { _ in
                LoopbackReply(
                    fields: [("Content-Encoding", "gzip"), ("Cache-Control", "max-age=600"), ("ETag", "\"a\"")],
                    bytes: gzipped
                )
            }
            let cache = HTTPCache(store: MemoryStore(capacity: 8 << 20))
            let pipeline = Pipeline(transport: try await run.transport(), cache: cache)
            for turn in 1...2 {
                let response = try await pipeline.send(origin.url("/"))
                let body = try await response.body.collect().array
                let isCoded = response.fields.contains("Content-Encoding") && !response.contentDecoded
                run.equal(body, to: isCoded ? gzipped : plain, for: "the body, time \(turn)")
                if turn == 2 { run.equal(response.source, to: .fresh, for: "the source, time 2") }
            }
            run.equal(origin.requests.count, to: 1, for: "requests")
            await cache.close()
        },
        Check("an unknown content coding is returned as received, or rejected") { run in
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "x-unknown")], body: "coded")
            }
            let transport = try await run.transport()
            if run.capabilities.refusesUnknownContentCodings {
                let error = await run.failure("an unknown coding") {
                    try await transport.send(origin.url("/")).text()
                }
                run.equal(error?.code, to: .unsupported, for: "the code")
                return
            }
            let response = try await transport.send(origin.url("/"))
            run.equal(response.contentDecoded, to: false, for: "contentDecoded")
            run.equal(try await response.text(), to: "coded", for: "the body")
        },
    ]

    /// A valid beginning, and then a block of the reserved type (RFC 1951 §3.2.3).
    private static let broken = Array(gzipped.prefix(10)) + [UInt8](repeating: 0xFF, count: 20)
    private static let plain = Array("hello hello hello hello".utf8)
    private static let gzipped: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 1, 227, 81, 61, 141, 23, 0, 0, 0,
    ]
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

extension TransportConformance {
    static let codingChecks: [Check] = [
        Check("a body in gzip is undone and says so, or is handed up as it came") { run in
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "gzip"), ("ETag", "\"a\"")], bytes: gzipped)
            }
            let response = try await run.transport().send(origin.url("/"), fields: ["Accept-Encoding": "gzip"])
            let isUndone = run.capabilities.undoesContentCodings.contains("gzip")
            run.equal(response.contentDecoded, isUndone, "contentDecoded")
            run.equal(response.fields["Content-Encoding"], "gzip", "Content-Encoding")
            if let length = response.body.length {
                run.equal(length, isUndone ? plain.count : gzipped.count, "the length that is known before")
            }
            run.equal(try await response.body.collect().array, isUndone ? plain : gzipped, "the body")
        },
        Check("gzip that is broken ends the body with an error where it is undone") { run in
            guard run.capabilities.undoesContentCodings.contains("gzip") else { return }
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "gzip")], bytes: broken)
            }
            let transport = try await run.transport()
            let error = await run.failure("broken gzip") {
                "\(try await transport.send(origin.url("/")).body.collect().count) bytes"
            }
            expectAnswered(error, run)
        },
        Check("a body in gzip is cached once, and right the second time") { run in
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
                run.equal(body, isCoded ? gzipped : plain, "the body, time \(turn)")
                if turn == 2 { run.equal(response.source, .fresh, "the source, time 2") }
            }
            run.equal(origin.requests.count, 1, "requests")
            await cache.close()
        },
        Check("an unknown content coding is handed up as it came, or refused") { run in
            let origin = try await run.origin { _ in
                LoopbackReply(fields: [("Content-Encoding", "x-unknown")], body: "coded")
            }
            let transport = try await run.transport()
            if run.capabilities.refusesUnknownContentCodings {
                let error = await run.failure("an unknown coding") {
                    try await transport.send(origin.url("/")).text()
                }
                run.equal(error?.code, .unsupported, "the code")
                return
            }
            let response = try await transport.send(origin.url("/"))
            run.equal(response.contentDecoded, false, "contentDecoded")
            run.equal(try await response.text(), "coded", "the body")
        },
    ]

    /// A good beginning, and then a block of the type that is reserved (RFC 1951 §3.2.3).
    private static let broken = Array(gzipped.prefix(10)) + [UInt8](repeating: 0xFF, count: 20)
    private static let plain = Array("hello hello hello hello".utf8)
    private static let gzipped: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 1, 227, 81, 61, 141, 23, 0, 0, 0,
    ]
}

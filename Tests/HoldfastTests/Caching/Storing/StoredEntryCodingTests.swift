// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("Encoding stored responses as metadata")
struct StoredEntryCodingTests {
    static func response(_ fields: HeaderFields = ["ETag": "\"v\"", "X-A": "1", "x-a": "2"]) throws -> StoredResponse {
        let request: HeaderFields = ["Accept": "a/b"]
        return StoredResponse(
            target: try TargetURI("https://h.example:8443/a?b#c"),
            method: .get,
            nominated: try #require(NominatedFields(vary: ["Vary": "Accept, Cookie"], request: request, secret: [1])),
            head: ResponseHead(status: .notFound, fields: fields),
            requestTime: Timestamp(millisecondsSinceEpoch: -5),
            responseTime: Timestamp(millisecondsSinceEpoch: 1_700_000_000_123),
            contentDecoded: true
        )
    }

    static func entry(_ version: UInt64, _ metadata: ByteChunk) -> StoredEntry {
        StoredEntry(
            key: StoreKey([1]),
            variant: StoreKey([]),
            version: StoredEntry.Version(number: version),
            description: EntryDescription(metadata: metadata),
            bodyLength: 0,
            storedAt: StoreInstant(milliseconds: 0)
        )
    }

    @Test("It decodes unchanged, field lines in order")
    func roundTrip() throws {
        let response = try Self.response()
        #expect(StoredResponse(decoding: response.encoded) == response)
        let bare = StoredResponse(
            target: try TargetURI("http://h/"),
            head: ResponseHead(status: .ok, fields: HeaderFields()),
            requestTime: Timestamp(millisecondsSinceEpoch: 0),
            responseTime: Timestamp(millisecondsSinceEpoch: 0)
        )
        #expect(StoredResponse(decoding: bare.encoded) == bare)
    }

    @Test(
        "A call's lifetime and a soft purge's mark are kept, and marking takes no room",
        arguments: [nil, 0, 86_400, Int64.max]
    )
    func marks(lifetime: Int64?) throws {
        let response = StoredResponse(
            target: try TargetURI("http://h/"),
            head: ResponseHead(status: .ok, fields: ["ETag": "\"v\""]),
            requestTime: Timestamp(millisecondsSinceEpoch: 0),
            responseTime: Timestamp(millisecondsSinceEpoch: 0),
            givenLifetime: lifetime
        )
        for expected in [response, response.needingConfirmation] {
            let read = try #require(StoredResponse(decoding: expected.encoded))
            #expect(read == expected)
            #expect(read.givenLifetime == lifetime)
        }
        #expect(response.encoded != response.needingConfirmation.encoded)
        #expect(response.encoded.count == response.needingConfirmation.encoded.count)
    }

    @Test("Truncations and flipped bytes decode to nothing or something, and never trap")
    func damage() throws {
        let bytes = try Self.response().encoded.array
        for count in bytes.indices { _ = StoredResponse(decoding: ByteChunk(Array(bytes[..<count]))) }
        for index in bytes.indices {
            var flipped = bytes
            flipped[index] ^= 0x80
            _ = StoredResponse(decoding: ByteChunk(flipped))
        }
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<2_000 {
            let random = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            }
            #expect(StoredResponse(decoding: ByteChunk(random)) == nil, "seed \(generator.seed)")
        }
    }

    @Test("Entries that 0.1.0 wrote are read", arguments: ["hsr2", "hsr3"])
    func former(_ format: String) throws {
        let response = try Self.response()
        var frames = FramedBytes()
        for part in [format, response.target.canonical, "GET"] { frames.append(part) }
        frames.append(response.nominated.framed)
        frames.append(String(response.requestTime.millisecondsSinceEpoch))
        frames.append(String(response.responseTime.millisecondsSinceEpoch))
        if format == "hsr3" { frames.append(String(response.requestOrder.rawValue)) }
        for part in ["d-", "9", "", String(response.head.status.rawValue)] { frames.append(part) }
        response.head.fields.encode(into: &frames)
        let read = try #require(StoredResponse(decoding: ByteChunk(frames.bytes)))
        #expect(read.head == response.head)
        #expect(read.target == response.target)
        #expect(read.contentDecoded && read.givenLifetime == 9 && !read.needsConfirmation)
        #expect(StoredResponse(decoding: read.encoded) == read)
    }

    @Test("RFC 9110 §8.8.2.2: a date that no update has made strong is read as weak, by whatever target list")
    func weakDate() throws {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        let received = Timestamp(secondsSinceEpoch: 1_700_000_000)
        let stored = StoredResponse(
            target: try TargetURI("http://h/"),
            head: ResponseHead(status: .ok, fields: ["Last-Modified": date, "Date": date]),
            requestTime: received,
            responseTime: received
        )
        let later = received.advanced(by: .seconds(60))
        let head = ResponseHead(status: .notModified)
        let freshened = stored.freshened(by: head, requestTime: later, responseTime: later, mode: .private)
        for targets in [[], [FieldName.cdnCacheControl]] {
            let read = try #require(StoredResponse(decoding: freshened.encoded, targetedFields: targets))
            #expect(read.lastModified != nil && StrongValidator(read) == nil)
        }
    }

    @Test("A cache with another target list reads the directives again")
    func otherTargets() throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "CDN-Cache-Control": "max-age=7"]
        let stored = try Self.response(fields)
        #expect(stored.freshnessLifetime(CacheOptions()).seconds == 60)
        let read = try #require(StoredResponse(decoding: stored.encoded, targetedFields: [.cdnCacheControl]))
        #expect(read.freshnessLifetime(CacheOptions()).seconds == 7)
        let again = try #require(StoredResponse(decoding: read.encoded, targetedFields: []))
        #expect(again.freshnessLifetime(CacheOptions()).seconds == 60)
    }
}

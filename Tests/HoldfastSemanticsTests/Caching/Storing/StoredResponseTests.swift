// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSemantics

@Suite("A stored response")
struct StoredResponseTests {
    private static func response(
        _ url: String = "https://h.example/a",
        method: RequestMethod = .get,
        vary: HeaderFields = [:],
        fields: HeaderFields = ["ETag": "\"v\"", "Cache-Control": "max-age=60"],
        sent: Int64 = 1_700_000_000,
        came: Int64 = 1_700_000_001,
        decoded: Bool = false,
        lifetime: Int64? = nil,
        needsConfirmation: Bool = false,
        targetedFields: [FieldName] = []
    ) throws -> StoredResponse {
        StoredResponse(
            target: try TargetURI(url),
            method: method,
            nominated: try #require(NominatedFields(vary: vary, request: ["Accept": "a/b"], secret: [1])),
            head: ResponseHead(status: .ok, fields: fields),
            requestTime: Timestamp(secondsSinceEpoch: sent),
            responseTime: Timestamp(secondsSinceEpoch: came),
            contentDecoded: decoded,
            givenLifetime: lifetime,
            needsConfirmation: needsConfirmation,
            targetedFields: targetedFields
        )
    }

    @Test("Two responses read from the same bytes are equal, and so are equal ones read from different bytes")
    func equality() throws {
        let response = try Self.response()
        #expect(try response == Self.response())
        #expect(try response.hashValue == Self.response().hashValue)
        var part = response
        part.ranges = StoredRanges(intervals: [0..<5], completeLength: 9)
        let others = try [
            part, response.needingConfirmation, response.needingConfirmation(.storeLostPower),
            Self.response("https://h.example/b"), Self.response(method: .head), Self.response(vary: ["Vary": "Accept"]),
            Self.response(fields: ["ETag": "\"w\""]), Self.response(sent: 1), Self.response(came: 1_700_000_002),
            Self.response(decoded: true), Self.response(lifetime: 5),
            Self.response(targetedFields: ["CDN-Cache-Control"]),
        ]
        for (index, other) in others.enumerated() {
            #expect(response != other)
            for another in others[(index + 1)...] { #expect(other != another) }
        }
        #expect(try response.needingConfirmation == Self.response(needsConfirmation: true))
    }

    @Test("Changing a copy leaves the original unchanged")
    func copies() throws {
        let response = try Self.response()
        var copy = response.needingConfirmation
        copy.ranges = StoredRanges(intervals: [0..<5], completeLength: 9)
        #expect(response.ranges == nil)
        #expect(!response.needsConfirmation)
        #expect(copy.head == response.head && copy.cacheControl == response.cacheControl)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct CacheKeyTests {
    @Test("The same credentials are the same principal, in whatever order their lines come")
    func principalOfAnyOrder() {
        let lines: [(FieldName, String)] = [("Authorization", "a"), ("Cookie", "c"), ("X-Key", "k"), ("X-Api", "i")]
        func digest(_ order: [Int], names: [FieldName]) -> String {
            let fields = HeaderFields(order.map { HeaderFields.Line(name: lines[$0].0, value: lines[$0].1) })
            return CachePrincipal.digest(of: fields, userinfo: nil, credentialFields: names, secret: [1])
        }
        let names: [FieldName] = ["X-Key", "X-Api", "Cookie"]
        let expected = digest([0, 1, 2, 3], names: names)
        for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 3, 1]] {
            #expect(digest(order, names: names.reversed()) == expected)
        }
    }

    @Test("Vector group primary_key", arguments: VectorFile.canonical?.primaryKey.vectors ?? [])
    func vectors(vector: KeyVector) throws {
        let key = CacheKey(
            partition: vector.partition,
            method: RequestMethod(rawValue: vector.method),
            target: try TargetURI(vector.uri),
            contentType: vector.contentType,
            contentDigest: vector.contentDigest
        )
        #expect(key.digestHex == vector.key)
        #expect(key.methodGroup.rawValue == vector.methodGroup)
    }

    @Test func framesReadBack() throws {
        let key = CacheKey(partition: "p", method: .head, target: try target())
        var reader = FramedBytes.Reader(key.framed)
        var parts: [String] = []
        while let part = reader.nextString() { parts.append(part) }
        #expect(parts == ["hck1", "p", "GET", "https://example.com/a", "", ""])
        #expect(reader.isAtEnd)
        #expect(key == CacheKey(partition: "p", method: .get, target: try target("https://example.com/a#x")))
    }

    @Test(
        "A damaged frame decodes to nothing",
        arguments: [
            [], [0], [0, 0, 0], [0, 0, 0, 1], [255, 255, 255, 255, 1, 2], [0, 0, 0, 2, 65],
        ] as [[UInt8]]
    )
    func damagedFrames(bytes: [UInt8]) {
        var reader = FramedBytes.Reader(bytes)
        let part = reader.next()
        #expect(part == nil)
        let text = reader.nextString()
        #expect(text == nil)
        #expect(reader.isAtEnd == bytes.isEmpty)
    }

    @Test func textMustBeUTF8() {
        var frames = FramedBytes()
        frames.append([0xFF])
        var reader = FramedBytes.Reader(frames.bytes)
        let text = reader.nextString()
        #expect(text == nil)
        let bytes = reader.next()
        #expect(bytes == [0xFF])
    }

    @Test("CACHING.md row 2: the requesting user determines the partition")
    func principals() {
        let secret: [UInt8] = [1, 2, 3]
        func digest(_ fields: HeaderFields, _ userinfo: String? = nil, _ explicit: String? = nil) -> String {
            CachePrincipal.digest(of: fields, userinfo: userinfo, explicit: explicit, secret: secret)
        }
        #expect(digest([:]) == "")
        #expect(digest(["Accept": "x", "Proxy-Authorization": "y"], "") == "")
        let distinct = [
            digest(["Authorization": "a"]), digest(["Authorization": "b"]), digest(["Cookie": "a"]),
            digest([:], "a"), digest([:], nil, "a"), digest([:], nil, ""),
            digest(["Authorization": "a", "Cookie": "a"]),
            digest(["Cookie": "a", "cookie": "b"]), digest(["Cookie": "a; b"]), digest(["Authorization": "a"], "u"),
        ]
        #expect(Set(distinct).count == distinct.count)
        #expect(distinct.allSatisfy { $0.utf8.count == 32 })
        #expect(digest(["Authorization": "a"], "u", "me") == digest([:], nil, "me"))
        #expect(CachePrincipal.digest(of: ["Cookie": "a"], userinfo: nil, secret: []) != digest(["Cookie": "a"]))
    }

    @Test("Fields that the caller declares as credentials count as well, unless they are absent")
    func namedCredentials() {
        func digest(_ fields: HeaderFields, _ names: [FieldName], _ explicit: String? = nil) -> String {
            CachePrincipal.digest(
                of: fields,
                userinfo: nil,
                explicit: explicit,
                credentialFields: names,
                secret: [1, 2, 3]
            )
        }
        #expect(digest(["X-Key": "a"], []) == "")
        #expect(digest(["Accept": "a"], ["X-Key"]) == "")
        #expect(digest(["x-key": "a"], ["X-KEY", "X-Other", "x-key"]) == digest(["X-Key": "a"], ["X-Key"]))
        #expect(digest(["Authorization": "a"], ["X-Key", "Authorization"]) == digest(["Authorization": "a"], []))
        #expect(digest(["X-Key": "a"], ["X-Key"], "me") == digest([:], [], "me"))
        let distinct = [
            digest(["X-Key": "a"], ["X-Key"]), digest(["X-Key": "b"], ["X-Key"]), digest(["Y-Key": "a"], ["Y-Key"]),
            digest(["X-Key": "a", "Authorization": "a"], ["X-Key"]), digest(["Authorization": "a"], ["X-Key"]),
            digest(["X-Key": ""], ["X-Key"]), "",
        ]
        #expect(Set(distinct).count == distinct.count)
    }

    @Test("A Cookie identifies the user only without any other credential")
    func cookieOnly() {
        func isCookieOnly(_ fields: HeaderFields, _ names: [FieldName] = []) -> Bool {
            CachePrincipal.isCookieOnly(fields, userinfo: nil, explicit: nil, credentialFields: names)
        }
        #expect(isCookieOnly(["Cookie": "a"]))
        #expect(isCookieOnly(["Cookie": "a"], ["X-Key"]))
        #expect(isCookieOnly(["Cookie": "a", "X-Key": "k"]))
        #expect(!isCookieOnly(["Cookie": "a", "X-Key": "k"], ["X-Key"]))
        #expect(!isCookieOnly(["X-Key": "k"], ["X-Key"]))
    }
}

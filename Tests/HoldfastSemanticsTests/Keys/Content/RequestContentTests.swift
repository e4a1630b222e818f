// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct RequestContentTests {
    private let json: HeaderFields = ["Content-Type": "application/json"]

    @Test("Vector group body", arguments: VectorFile.canonical?.body.vectors ?? [])
    func vectors(vector: BodyVector) {
        let bytes = Array(vector.body.utf8)
        let normalizer = ContentNormalizer(rawValue: vector.normalizer)
        #expect([.raw, .json].contains(normalizer))
        let normalized = normalizer.normalized(bytes)
        #expect((normalized == nil) == (vector.isFallback || normalizer == .raw))
        #expect((normalized ?? bytes) == Array(vector.canonical.utf8))
        #expect(RequestContent(bytes, fields: json, normalizer: normalizer).digest == vector.digest)
    }

    private func digest(_ text: String, _ fields: HeaderFields, _ normalizer: ContentNormalizer) -> String {
        RequestContent(Array(text.utf8), fields: fields, normalizer: normalizer).digest
    }

    @Test("RFC 10008: only JSON content is normalized, and only if requested")
    func normalizing() {
        let one = "{\"b\":1,\"a\":2}"
        let other = "{ \"a\":2, \"b\":1 }"
        #expect(digest(one, json, .json) == digest(other, json, .json))
        #expect(digest(one, json, .graphQL) == digest(other, json, .graphQL))
        #expect(digest(one, json, .raw) != digest(other, json, .raw))
        #expect(digest(one, json, ContentNormalizer(rawValue: "new")) == digest(one, json, .raw))
        let others: [HeaderFields] = [
            [:], ["Content-Type": "text/plain"], ["Content-Type": "application/json;charset=utf-16"],
            ["Content-Type": "application/json", "Content-Encoding": "identity"],
        ]
        for fields in others {
            #expect(digest(one, fields, .json) == digest(one, fields, .raw))
        }
    }

    @Test("GraphQL over HTTP: null equals absent in the outermost object only")
    func graphQL() {
        let plain = digest("{\"query\":\"{a}\"}", json, .graphQL)
        let nulls = "{\"variables\":null,\"operationName\":null,\"extensions\":null,\"query\":\"{a}\"}"
        #expect(digest(nulls, json, .graphQL) == plain)
        #expect(digest(nulls, json, .json) != plain)
        #expect(digest("{\"query\":\"{a}\",\"variables\":{}}", json, .graphQL) != plain)
        #expect(digest("{\"query\":\"{a}\",\"x\":null}", json, .graphQL) != plain)
        #expect(digest("{\"query\":\"{a}\",\"operationName\":\"null\"}", json, .graphQL) != plain)
        let inner = "{\"query\":\"{a}\",\"variables\":{\"variables\":null}}"
        #expect(digest(inner, json, .graphQL) != digest("{\"query\":\"{a}\",\"variables\":{}}", json, .graphQL))
        #expect(digest("[null]", json, .graphQL) == digest("[ null ]", json, .graphQL))
    }

    @Test("RFC 10008: the content's metadata is part of the key")
    func metadata() throws {
        let spellings: [HeaderFields] = [
            [:], ["Content-Type": "a/b"], ["Content-Type": "a/c"], ["Content-Type": "a/b", "Content-Encoding": "gzip"],
            ["Content-Type": "a/b", "Content-Encoding": "br"], ["Content-Type": "a/b", "Content-Language": "br"],
            ["Content-Encoding": "gzip"], ["Content-Type": "a/b content-encoding:gzip"],
        ]
        let contents = spellings.map { RequestContent([1], fields: $0) }
        #expect(Set(contents.map { Array($0.contentType.utf8) }).count == spellings.count)
        #expect(Set(contents.map(\.digest)).count == 1)
        #expect(contents[0].contentType.isEmpty)
        let folded = RequestContent([1], fields: ["Content-Type": "A/B", "content-encoding": "GZIP"])
        #expect(folded.contentType == contents[3].contentType)
        let empty = RequestContent([], fields: json)
        let query = RequestMethod(rawValue: "QUERY")
        let key = CacheKey(
            method: query,
            target: try target(),
            contentType: empty.contentType,
            contentDigest: empty.digest
        )
        #expect(key != CacheKey(method: query, target: try target()))
    }
}

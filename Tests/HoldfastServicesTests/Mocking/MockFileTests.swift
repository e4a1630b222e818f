// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Files of mocks", .timeLimit(.minutes(20)))
struct MockFileTests {
    private func provider(_ json: String, beside files: [String: String] = [:]) throws -> (MockDataProvider, URL) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "mocks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, content) in files { try Data(content.utf8).write(to: folder.appending(path: name)) }
        let file = folder.appending(path: "mocks.json")
        try Data(json.utf8).write(to: file)
        do {
            return (try MockDataProvider(contentsOf: file), folder)
        } catch {
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    private func answer(_ url: String, _ method: String, from provider: MockDataProvider) async throws -> Response {
        var request = URLRequest(url: try #require(URL(string: url)))
        request.httpMethod = method
        return try await provider.send(request, body: .none, context: CallContext())
    }

    @Test("P24: every key of a file has an effect")
    func keys() async throws {
        let (provider, folder) = try provider(
            #"""
            {"mocks": [
              {"url": "https://a.example/1", "method": "PUT", "status": 201, "fields": {"X": "1"}, "body": "text"},
              {"url": "https://a.example/2", "json": {"b": [1, true, null], "a": "x"}},
              {"url": "https://a.example/3", "json": 1, "fields": {"content-type": "application/problem+json"}},
              {"url": "https://a.example/4", "bodyFile": "four.txt", "requestFields": {}},
              {"url": "https://a.example/5", "requestFields": {"X": "1"}}
            ]}
            """#,
            beside: ["four.txt": "four"]
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        let first = try await answer("https://a.example/1", "PUT", from: provider)
        #expect(first.status.rawValue == 201)
        #expect(first.fields["x"] == "1")
        #expect(try await first.body.data() == Data("text".utf8))
        await #expect(throws: ServiceError.self) { try await answer("https://a.example/1", "GET", from: provider) }
        let second = try await answer("https://a.example/2", "GET", from: provider)
        #expect(second.status == .ok)
        #expect(second.fields["Content-Type"] == "application/json")
        #expect(try await second.body.data() == Data(#"{"a":"x","b":[1,true,null]}"#.utf8))
        let third = try await answer("https://a.example/3", "GET", from: provider)
        #expect(third.fields.values(of: "Content-Type") == ["application/problem+json"])
        #expect(try await answer("https://a.example/4", "GET", from: provider).body.data() == Data("four".utf8))
        await #expect(throws: ServiceError.self) { try await answer("https://a.example/5", "GET", from: provider) }
    }

    @Test(
        "An error in a file is reported with the mock and the key",
        arguments: [
            ("{", "is not valid JSON"), ("[]", "\"mocks\" is an array"), (#"{"mocks": {}}"#, "\"mocks\" is an array"),
            (#"{"mocks": [], "mock": 1}"#, "no key \"mock\""), (#"{"mocks": [1]}"#, "mock 1: it must be an object"),
            (#"{"mocks": [{"url": "http://a"}, {}]}"#, "mock 2: \"url\" is missing"),
            (#"{"mocks": [{"url": 1}]}"#, "\"url\" must be a text"),
            (#"{"mocks": [{"url": "http://a", "header": {}}]}"#, "no key \"header\"; the keys are body, "),
            (#"{"mocks": [{"url": "/a"}]}"#, "mock 1: The URL of a mock"),
            (#"{"mocks": [{"url": "http://a", "status": "200"}]}"#, "\"status\" must be a whole number"),
            (#"{"mocks": [{"url": "http://a", "status": 200.5}]}"#, "\"status\" must be a whole number"),
            (#"{"mocks": [{"url": "http://a", "status": 99}]}"#, "The status of a mock is 99"),
            (#"{"mocks": [{"url": "http://a", "method": "G T"}]}"#, "\"method\" is not a method"),
            (#"{"mocks": [{"url": "http://a", "fields": {"A": 1}}]}"#, "\"fields\" must be an object of texts"),
            (#"{"mocks": [{"url": "http://a", "fields": {"A B": "1"}}]}"#, "\"A B\" in \"fields\""),
            (#"{"mocks": [{"url": "http://a", "body": "", "json": 1}]}"#, "\"body\" and \"json\"; keep one"),
            (#"{"mocks": [{"url": "http://a", "body": null}]}"#, "\"body\" must be a text"),
        ]
    )
    func wrong(_ json: String, said: String) {
        #expect {
            try provider(json)
        } throws: { error in
            guard let error = error as? ServiceError else { return false }
            return error.code == .decodingFailed && error.message.contains(said)
                && error.message.contains("mocks.json") && !error.message.contains("..")
        }
    }

    @Test("A missing file is an error that names it")
    func missing() {
        #expect {
            try MockDataProvider(contentsOf: URL(fileURLWithPath: "/nowhere/mocks.json"))
        } throws: { error in
            (error as? ServiceError)?.code == .resourceUnavailable
                && (error as? ServiceError)?.message.contains("mocks.json") == true
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Fresh hits: the Foundation form of the head", .timeLimit(.minutes(20)))
struct FreshHitFoundationTests {
    let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=600", "X-A": "1"] }

    /// A response that is ready.
    private func response(_ request: URLRequest = .get()) async throws -> Response {
        await twins.warm(request)
        return try await twins.short.pipeline.send(request)
    }

    private func field(_ name: String, of head: HTTPURLResponse?) -> String? {
        head?.value(forHTTPHeaderField: name)
    }

    @Test("Answers within one second share it, and those of the next second have their own")
    func shared() async throws {
        let first = try await response()
        let second = try await twins.short.pipeline.send(.get())
        let head = try #require(first.makeHTTPURLResponse())
        #expect(second.makeHTTPURLResponse() === head)
        twins.short.clock.advance(by: .seconds(1))
        let answer = try await twins.short.pipeline.send(.get())
        let later = try #require(answer.makeHTTPURLResponse())
        #expect(later !== head)
        #expect(field("Age", of: later) == "1")
        #expect(field("Age", of: head) == "0")
        // The earlier answer is still itself, whatever came since.
        #expect(field("Age", of: first.makeHTTPURLResponse()) == "0")
    }

    @Test("The same applies to data(for:)")
    func data() async throws {
        _ = try await response()
        let (_, first) = try await twins.short.pipeline.data(for: .get())
        let (_, second) = try await twins.short.pipeline.data(for: .get())
        #expect(first === second)
        let (_, other) = try await twins.long.pipeline.data(for: .get())
        let left = try #require(first as? HTTPURLResponse)
        let right = try #require(other as? HTTPURLResponse)
        #expect(left.statusCode == right.statusCode)
        #expect(left.url == right.url)
        #expect(left.allHeaderFields as? [String: String] == right.allHeaderFields as? [String: String])
    }

    @Test(
        "An edited response has its own, and leaves that of the others alone"
    )
    func edited() async throws {
        let response = try await response()
        let head = try #require(response.makeHTTPURLResponse())
        var edited = response
        edited.fields["X-A"] = "2"
        #expect(field("X-A", of: edited.makeHTTPURLResponse()) == "2")
        edited = response
        edited.fields["X-B"] = "3"
        #expect(field("X-B", of: edited.makeHTTPURLResponse()) == "3")
        edited = response
        edited.fields.removeAll("X-A")
        #expect(field("X-A", of: edited.makeHTTPURLResponse()) == nil)
        edited = response
        edited.fields = [:]
        #expect(edited.makeHTTPURLResponse()?.allHeaderFields.isEmpty == true)
        edited = response
        edited.status = .notFound
        #expect(edited.makeHTTPURLResponse()?.statusCode == 404)
        edited = response
        edited.url = URL(string: "http://origin.example/b")
        #expect(edited.makeHTTPURLResponse()?.url?.path == "/b")
        edited.url = nil
        #expect(edited.makeHTTPURLResponse() == nil)
        let other = try await twins.short.pipeline.send(.get())
        #expect(other.makeHTTPURLResponse()?.statusCode == 200)
        #expect(other.makeHTTPURLResponse()?.url?.path == "/a")
        #expect(field("X-A", of: other.makeHTTPURLResponse()) == "1")
        #expect(field("X-A", of: head) == "1")
    }

    @Test("A response that was the only one of its second and was edited has its own")
    func editedAlone() async throws {
        _ = try await response()
        twins.short.clock.advance(by: .seconds(5))
        var only = try await twins.short.pipeline.send(.get())
        // Another second: nobody else holds these fields any more, so that they are changed where they lie.
        twins.short.clock.advance(by: .seconds(5))
        _ = try await twins.short.pipeline.send(.get())
        only.fields["X-A"] = "2"
        #expect(field("X-A", of: only.makeHTTPURLResponse()) == "2")
        #expect(field("Age", of: only.makeHTTPURLResponse()) == "5")
    }

    @Test("A hook that edits responses affects what each caller sees, and nothing else")
    func hooked() async throws {
        let cache = HTTPCache.inMemory()
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=600", "X-A": "1"], body: "x")])
        var hook = RecordingHook(name: "edits", log: HookLog())
        let numbers = AnswerNumbers()
        hook.success = { response, _ in response.fields["X-A"] = "call \(numbers.next())" }
        let pipeline = Pipeline(transport: transport, cache: cache, hooks: [hook])
        for number in 1...12 {
            let (_, head) = try await pipeline.data(for: .get())
            #expect(field("X-A", of: head as? HTTPURLResponse) == "call \(number)")
        }
        let (_, head) = try await Pipeline(transport: transport, cache: cache).data(for: .get())
        #expect(field("X-A", of: head as? HTTPURLResponse) == "1")
    }

    @Test("A relative URL gets a head with exactly that URL, although both have the same text")
    func relativeURL() async throws {
        var answer = try await response()
        let shared = try #require(answer.makeHTTPURLResponse())
        let base = try #require(URL(string: "http://origin.example/"))
        answer.url = URL(string: "a", relativeTo: base)
        #expect(answer.url?.absoluteString == shared.url?.absoluteString)
        let own = answer.makeHTTPURLResponse()
        #expect(own !== shared)
        #expect(own?.url == answer.url)
        #expect(try await twins.short.pipeline.send(.get()).makeHTTPURLResponse() === shared)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Typed calls through an HTTP cache", .timeLimit(.minutes(20)))
struct CachedCallsTests {
    private let fresh: HeaderFields = ["Cache-Control": "max-age=60"]
    private let clock = ManualClock(autoAdvances: true)

    private func client(
        _ transport: ScriptedTransport,
        _ log: CallFixtures.Log = CallFixtures.Log()
    ) -> ServiceClient<AnyHttpService> {
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.cache = .inMemory()
        return CallFixtures.client(service, transport, clock: clock)
    }

    /// One text after the other, all of them fresh for a minute.
    private func counting() -> ScriptedTransport {
        ScriptedTransport((1...9).map { .respond(200, fresh, body: "\($0)") })
    }

    @Test("S-T27: the second GET is answered from the store, with an equal result")
    func twice() async throws {
        let transport = counting()
        let log = CallFixtures.Log()
        let client = client(transport, log)
        for _ in 0..<2 { #expect(try await CallFixtures.text().schedule(with: client) == "1") }
        #expect(transport.sent.count == 1)
        #expect(log.entries.last == "a.success(1, fresh)")
    }

    @Test(
        "S-T28: in an HTTP cache a response is stale when its age has reached the lifetime",
        arguments: [(59, 1), (60, 2)]
    )
    func lifetime(_ age: Int, _ sends: Int) async throws {
        let transport = counting()
        let client = client(transport)
        _ = try await CallFixtures.text().schedule(with: client)
        clock.advance(by: .seconds(age))
        _ = try await CallFixtures.text().schedule(with: client)
        #expect(transport.sent.count == sends)
    }

    @Test("S-T29: no other method is answered from the store", arguments: [HttpMethod.post, .put, .delete, .patch])
    func methods(_ method: HttpMethod) async throws {
        let transport = counting()
        let client = client(transport)
        for _ in 0..<2 { _ = try await CallFixtures.text(method).schedule(with: client) }
        #expect(transport.sent.count == 2)
    }

    @Test("S-T30: each credential has its own entries, also in a custom field")
    func credentials() async throws {
        for field in ["Authorization", "X-Api-Key"] {
            let transport = counting()
            var service = CallFixtures.service()
            service.cache = .inMemory()
            let name = CallFixtures.Log()
            service.findAuthorization = {
                .custom(key: FieldName(field) ?? .authorization, value: name.entries.last ?? "")
            }
            let client = CallFixtures.client(service, transport, clock: clock)
            var results: [String] = []
            for user in ["a", "b", "a"] {
                name.note(user)
                results.append(try await CallFixtures.text().schedule(with: client))
            }
            #expect(results == ["1", "2", "1"], "\(field)")
        }
    }

    @Test(
        "S-T30: a credential that first appears in a retry makes the response private to its owner",
        arguments: ["authorization", "header"]
    )
    func lateCredential(_ way: String) async throws {
        let transport = ScriptedTransport { request in
            guard let key = request.value(forHTTPHeaderField: "X-Api-Key") else { return .respond(401) }
            return .respond(200, ["Cache-Control": "max-age=60"], body: "page of \(key)")
        }
        let key = Mutex<String?>(nil)
        let mayLogIn = Mutex(true)
        var service = CallFixtures.service()
        service.cache = .inMemory()
        if way == "header" {
            service.makeHeader = { key.withLock { $0 }.map { ["X-Api-Key": $0] } ?? [:] }
        } else {
            service.findAuthorization = {
                key.withLock { $0 }.map { .custom(key: "X-Api-Key", value: $0) } ?? .none
            }
        }
        service.retrierFactory = AnyRetrierFactory { _ in
            CallFixtures.ClosureRetrier(allowsMultipleRetries: false) { attempt in
                guard attempt.response?.status == .unauthorized, mayLogIn.withLock({ $0 }) else {
                    return .stop(.retrierDeclined)
                }
                key.withLock { $0 = "alice" }
                return .retryNow
            }
        }
        let client = CallFixtures.client(service, transport, clock: clock)
        #expect(try await CallFixtures.text().schedule(with: client) == "page of alice")
        #expect(try await CallFixtures.text().schedule(with: client) == "page of alice")
        // Alice logs out, and nobody logs in.
        key.withLock { $0 = nil }
        mayLogIn.withLock { $0 = false }
        await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(transport.sent.last?.field("X-Api-Key") == nil)
    }

    @Test("S-T31: different spellings of one GET share an entry")
    func spellings() async throws {
        let transport = counting()
        let client = client(transport)
        var first = CallFixtures.text()
        first.query = ["a": 1, "b": 2]
        first.header = ["X-Client": "x"]
        var second = CallFixtures.text()
        second.url = "API.Example.com:443/#part"
        second.query = ["b": 2, "a": 1]
        second.header = ["x-client": "x"]
        #expect(try await first.schedule(with: client) == "1")
        #expect(try await second.schedule(with: client) == "1")
        #expect(transport.sent.count == 1)
    }

    @Test(
        "S-T32: requests that a server may distinguish have their own entries",
        arguments: [("a=1&a=2", "a=2&a=1"), ("n", "n="), ("q=%2B", "q=+")]
    )
    func distinct(_ left: String, _ right: String) async throws {
        let transport = counting()
        let client = client(transport)
        var results: [String] = []
        for query in [left, right, left] {
            var request = CallFixtures.text()
            request.url = "api.example.com?\(query)"
            results.append(try await request.schedule(with: client))
        }
        #expect(results == ["1", "2", "1"])
    }

    @Test("S-T33: a stored response is decoded as the requested type; if that fails, it is removed and fetched again")
    func otherType() async throws {
        let transport = ScriptedTransport([.respond(200, fresh, body: "[1]"), .respond(200, fresh, body: "7")])
        let log = CallFixtures.Log()
        let client = client(transport, log)
        let list = AnyRequest(routes: ["text"]) { try JSONDecoder().decode([Int].self, from: $0) }
        let number = AnyRequest(routes: ["text"]) { try JSONDecoder().decode(Int.self, from: $0) }
        #expect(try await CallFixtures.text().schedule(with: client) == "[1]")
        #expect(try await list.schedule(with: client) == [1])
        #expect(transport.sent.count == 1)
        #expect(try await number.schedule(with: client) == 7)
        #expect(try await CallFixtures.text().schedule(with: client) == "7")
        #expect(transport.sent.count == 2)
        #expect(!log.entries.contains { $0.contains("failure") })
    }

    @Test("S-T33, S-T34: a refused response is not stored", arguments: [(200, "none"), (404, "7")])
    func refused(_ status: Int, _ body: String) async throws {
        let transport = ScriptedTransport([.respond(status, fresh, body: body), .respond(200, fresh, body: "7")])
        let client = client(transport)
        let number = AnyRequest(routes: ["n"]) { try JSONDecoder().decode(Int.self, from: $0) }
        await #expect(throws: ServiceError.self) { try await number.schedule(with: client) }
        #expect(try await number.schedule(with: client) == 7)
        #expect(transport.sent.count == 2)
    }

    @Test("S-T35: a hundred concurrent calls share one exchange, and each decodes for itself")
    func collapsed() async throws {
        let clock = ManualClock()
        let step = ScriptedTransport.Step.respond(200, fresh, body: "1").delayed(by: .seconds(1))
        let transport = ScriptedTransport([step])
        let log = CallFixtures.Log()
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.cache = .inMemory()
        let client = CallFixtures.client(service, transport, clock: clock)
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await CallFixtures.text().schedule(with: client) } }
            try await transport.waitForSends(1)
            while log.count("a.schedule") < 100 { await Task.yield() }
            clock.advance(by: .seconds(1))
            for try await text in group { #expect(text == "1") }
        }
        #expect(transport.sent.count == 1)
        #expect(log.entries.count { $0.hasPrefix("a.success(1") } == 100)
    }

    @Test("A call that shares an exchange and refuses its content does not affect the other")
    func collapsedAndRefused() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport([
            .respond(200, fresh, body: "text").delayed(by: .seconds(1)), .respond(200, fresh, body: "7"),
        ])
        let log = CallFixtures.Log()
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.cache = .inMemory()
        let client = CallFixtures.client(service, transport, clock: clock)
        let text = Task { try await CallFixtures.text().schedule(with: client) }
        try await transport.waitForSends(1)
        let number = AnyRequest(routes: ["text"]) { try JSONDecoder().decode(Int.self, from: $0) }
        let other = Task { try await number.schedule(with: client) }
        while log.count("a.schedule") < 2 { await Task.yield() }
        clock.advance(by: .seconds(1))
        #expect(try await text.value == "text")
        _ = await other.result
        #expect(log.count("a.success(text, network(attempts: 1))") == 1)
    }

    @Test("If nothing is stored and nothing may be sent, the error says so")
    func onlyIfCached() async throws {
        let transport = counting()
        let log = CallFixtures.Log()
        let client = client(transport, log)
        var request = CallFixtures.text()
        request.options.cache.onlyIfCached = true
        let stored = request
        let error = await #expect(throws: ServiceError.self) { try await stored.schedule(with: client) }
        #expect(error?.code == .resourceUnavailable)
        #expect(error?.response?.status == .gatewayTimeout)
        #expect(transport.sent.isEmpty)
        _ = try await CallFixtures.text().schedule(with: client)
        #expect(try await stored.schedule(with: client) == "1")
    }

    @Test("On a server error the stored response is served if the server allows it, and the hooks see a success")
    func staleOnError() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=1, stale-if-error=60"], body: "old"), .respond(503),
        ])
        let log = CallFixtures.Log()
        let client = client(transport, log)
        _ = try await CallFixtures.text().schedule(with: client)
        clock.advance(by: .seconds(10))
        #expect(try await CallFixtures.text().schedule(with: client) == "old")
        #expect(log.entries.last == "a.success(old, stale)")
    }
}

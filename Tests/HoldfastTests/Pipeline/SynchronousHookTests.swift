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

@Suite("Hooks that wait for nothing", .timeLimit(.minutes(20)))
struct SynchronousHookTests {
    private struct Naming: SynchronousServiceHook {
        let log: HookLog

        func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
            log.add("scheduled")
            try request.setField("X-Name", to: "a")
            return nil
        }

        func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {
            log.add("succeeded \(request.value(forHTTPHeaderField: "X-Name") ?? "")")
        }
    }

    private struct Idle: SynchronousServiceHook {}

    @Test("The moments of any hook call the synchronous ones")
    func asAnyHook() async throws {
        let log = HookLog()
        let hook: any ServiceHook = Naming(log: log)
        var request = URLRequest.get()
        var context = CallContext()
        let answer = try await hook.onSchedule(&request, &context)
        #expect(answer == nil)
        var response = Response(status: .ok)
        try await hook.onSuccess(&response, request, &context)
        #expect(log.entries == ["scheduled", "succeeded a"])
    }

    @Test("What is not implemented is not called again")
    func idle() async throws {
        var request = URLRequest.get()
        var context = CallContext()
        let answer = try Idle().scheduled(&request, context: &context)
        #expect(answer == nil)
        let isDefault = context.takesDefault(.schedule, of: Idle())
        #expect(isDefault)
        var response = Response(status: .ok)
        try Idle().succeeded(&response, to: request, context: &context)
        let isDefaultToo = context.takesDefault(.success, of: Idle())
        #expect(isDefaultToo)
    }

    @Test("A hit below a hook that sets a credential is one for that credential only")
    func credential() async throws {
        struct Bearer: SynchronousServiceHook {
            let token: String

            func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
                try request.setField("Authorization", to: "Bearer \(token)")
                return nil
            }
        }
        let cache = HTTPCache.inMemory()
        let transport = ScriptedTransport { request in
            .respond(
                200,
                ["Cache-Control": "max-age=60"],
                body: request.value(forHTTPHeaderField: "Authorization") ?? ""
            )
        }
        for token in ["a", "b", "a", "b"] {
            let pipeline = Pipeline(transport: transport, cache: cache, hooks: [Bearer(token: token)])
            let body = try await pipeline.send(.get()).body.collect()
            #expect(String(decoding: body, as: UTF8.self) == "Bearer \(token)")
        }
        #expect(transport.sent.count == 2)
    }
}

@Suite("Fields of a request in one step")
struct RequestFieldsTests {
    @Test(
        "A field takes the place of the one with its name",
        arguments: [
            ([:], ["X-A": "1"]), (["X-A": "0"], ["X-A": "1"]), (["x-a": "0"], ["X-A": "1"]),
            (["X-Ab": "0", "X": "2"], ["X-Ab": "0", "X": "2", "X-A": "1"]),
        ] as [([String: String], [String: String])]
    )
    func replaces(_ before: [String: String], _ after: [String: String]) throws {
        var request = URLRequest.get("http://origin.example/a", before)
        let original = request
        try request.setField("X-A", to: "1")
        #expect(request.allHTTPHeaderFields == after)
        #expect(
            original.allHTTPHeaderFields ?? [:] == URLRequest.get("http://origin.example/a", before).allHTTPHeaderFields
                ?? [:]
        )
    }

    @Test(
        "What cannot be sent is refused, and changes nothing",
        arguments: [
            ("", "1"), ("X A", "1"), ("X-A:", "1"), ("X-Ä", "1"), ("X-A", "1\r\nX-B: 2"), ("X-A", "1\n"),
            ("X-A", "1\0"),
        ]
    )
    func refuses(_ name: String, _ value: String) {
        var request = URLRequest.get("http://origin.example/a", ["X-A": "0"])
        #expect(throws: ServiceError.self) { try request.setField(name, to: value) }
        #expect(request.allHTTPHeaderFields == ["X-A": "0"])
    }

    @Test("Several are set and removed at once; the former values are returned, whatever the spelling")
    func several() {
        var request = URLRequest.get("http://origin.example/a", ["x-a": "0", "X-B": "1"])
        let former = request.setFields([("X-A", "2"), ("X-B", nil), ("X-C", nil), ("X-D", "3")])
        #expect(request.allHTTPHeaderFields == ["X-A": "2", "X-D": "3"])
        #expect(former == ["X-A": "0", "X-B": "1"])
        #expect(request.field("x-d") == "3")
        #expect(request.field("x") == nil)
    }

    @Test("The fields that were added are those with other values, whatever the spelling of the names")
    func added() {
        var request = URLRequest.get()
        request.allHTTPHeaderFields = ["Accept": "x", "X-A": "1", "x-b": "2", "X-C": "4"]
        #expect(request.fieldsAdded(to: ["X-a": "1", "X-B": "2", "X-C": "3"]) == ["X-C"])
        #expect(request.fieldsAdded(to: request.allHTTPHeaderFields ?? [:]) == [])
        #expect(request.fieldsAdded(to: [:]).sorted() == ["X-A", "X-C", "x-b"])
    }
}

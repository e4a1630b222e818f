// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Protocol classes for pipelines", .timeLimit(.minutes(20)))
struct InterceptionRegistryTests {
    private let pipeline = Pipeline(transport: ScriptedTransport([.respond(body: "piped")], repeatsLastStep: true))
    private let configuration = URLSessionConfiguration.ephemeral

    private func first(_ configuration: URLSessionConfiguration) throws -> ObjectIdentifier {
        ObjectIdentifier(try #require(configuration.protocolClasses?.first))
    }

    @Test("One pipeline has one class, however often it is requested, and so have its copies")
    func shared() throws {
        defer { pipeline.stopIntercepting() }
        let copy = pipeline
        let once = configuration.intercepted(by: pipeline)
        #expect(try first(once) == first(configuration.intercepted(by: copy)))
        let twice = once.intercepted(by: pipeline)
        #expect(try first(once) == first(twice))
        #expect(twice.protocolClasses?.count == once.protocolClasses?.count)
        #expect(!(configuration.protocolClasses?.first is InterceptingURLProtocol.Type))
    }

    @Test("Another pipeline, other settings and a choice of requests each have their own class")
    func distinct() throws {
        let other = Pipeline(transport: ScriptedTransport([]))
        defer {
            pipeline.stopIntercepting()
            other.stopIntercepting()
        }
        var classes = [try first(configuration.intercepted(by: pipeline))]
        classes.append(try first(configuration.intercepted(by: other)))
        classes.append(try first(configuration.intercepted(by: pipeline, bodyLimit: 1)))
        for _ in 0..<2 { classes.append(try first(configuration.intercepted(by: pipeline, matching: { _ in true }))) }
        configuration.httpAdditionalHeaders = ["Authorization": "x"]
        classes.append(try first(configuration.intercepted(by: pipeline)))
        classes.append(try first(.holdfast(pipeline)))
        #expect(Set(classes).count == classes.count)
    }

    @Test("Once interception stops, a session continues as without it, and no other pipeline gets its class")
    func withdrawn() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "plain") }
        let intercepted = configuration.intercepted(by: pipeline)
        let session = URLSession(configuration: intercepted)
        #expect(try await session.data(from: server.url()).0 == Data("piped".utf8))
        pipeline.stopIntercepting()
        pipeline.stopIntercepting()
        #expect(try await session.data(from: server.url()).0 == Data("plain".utf8))
        let again = configuration.intercepted(by: pipeline)
        defer { pipeline.stopIntercepting() }
        #expect(try first(again) != first(intercepted))
        #expect(try await session.data(from: server.url()).0 == Data("plain".utf8))
        #expect(try await URLSession(configuration: again).data(from: server.url()).0 == Data("piped".utf8))
        #expect(try await pipeline.data(from: server.url()).0 == Data("piped".utf8))
    }

    @Test("The number of classes is limited, and a stopped one makes room")
    func bounded() {
        let registry = InterceptionRegistry(limit: 2)
        let interception = Interception(
            pipeline: pipeline,
            settings: InterceptionSettings(configuration),
            matching: nil,
            bodyLimit: 1
        )
        #expect(registry.protocolClass(for: interception, key: nil) != nil)
        #expect(registry.protocolClass(for: interception, key: nil) != nil)
        #expect(registry.protocolClass(for: interception, key: nil) == nil)
        registry.withdraw(pipeline: pipeline.identity)
        #expect(registry.protocolClass(for: interception, key: nil) != nil)
    }

    @Test("Every number has its own class")
    func numbers() {
        let classes = (0..<300).map { ObjectIdentifier(InterceptionSlot.protocolClass(number: $0)) }
        #expect(Set(classes).count == 300)
        #expect(ObjectIdentifier(InterceptionSlot.protocolClass(number: 77)) == classes[77])
        #expect(ObjectIdentifier(InterceptionSlot.protocolClass(number: .max)) != classes[0])
    }

    @Test(
        "Only http and https are intercepted",
        arguments: [
            ("http://a.example/", true), ("HTTPS://a.example/", true), ("ws://a.example/", false), ("file:///a", false),
            ("data:,x", false), ("a", false),
        ]
    )
    func schemes(_ text: String, _ isTaken: Bool) throws {
        let interception = Interception(
            pipeline: pipeline,
            settings: InterceptionSettings(configuration),
            matching: nil,
            bodyLimit: 1
        )
        #expect(interception.takes(URLRequest(url: try #require(URL(string: text)))) == isTaken)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import Testing

@testable import Quickstart

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The built-in origin", .timeLimit(.minutes(20)))
struct OriginTests {
    let resources = Resource.catalogue(count: 40, seed: 1)

    func makeOrigin(failShare: Double = 0) -> Origin {
        Origin(
            resources: resources,
            bodies: BodySource(seed: 1),
            failShare: failShare,
            seed: 1,
            clock: InstantClock()
        )
    }

    func request(_ resource: Resource, _ fields: [String: String] = [:]) throws -> URLRequest {
        try request("http://pmapi/origin/resources/\(resource.number)", fields)
    }

    func request(_ url: String, _ fields: [String: String] = [:]) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    func first(_ kind: ResourceKind) throws -> Resource {
        try #require(resources.first { $0.kind == kind })
    }

    @Test("A cacheable resource has a lifetime, an ETag and a Date")
    func keepable() async throws {
        let resource = try first(.keepable)
        let response = try await makeOrigin().respond(to: request(resource), body: .none)
        #expect(response.status == .ok)
        #expect(response.fields[.cacheControl] == "max-age=\(resource.maxAge)")
        #expect(response.fields[.eTag] != nil)
        #expect(response.fields[.date]?.hasSuffix("Jan 2026 00:00:00 GMT") == true)
        #expect(response.fields[.contentLength] == "\(resource.size)")
        #expect(try await response.body.collect().count == resource.size)
    }

    @Test("RFC 9110 §13.1.2: If-None-Match with the current tag gets a 304 without a body, any other the body")
    func conditional() async throws {
        let origin = makeOrigin()
        let resource = try first(.revalidated)
        let whole = try await origin.respond(to: request(resource), body: .none)
        #expect(["no-cache", "max-age=0"].contains(whole.fields[.cacheControl]))
        let tag = try #require(whole.fields[.eTag])
        for condition in [tag, "W/\(tag)", "\"other\", \(tag)", "*"] {
            let response = try await origin.respond(to: request(resource, ["If-None-Match": condition]), body: .none)
            #expect(response.status == .notModified, "\(condition)")
            #expect(response.fields[.eTag] == tag)
            #expect(response.fields[.contentLength] == nil)
            #expect(try await response.body.collect().isEmpty)
        }
        let other = try await origin.respond(to: request(resource, ["If-None-Match": "\"other\""]), body: .none)
        #expect(other.status == .ok)
        #expect(origin.traffic == Traffic(sends: 6, bodyBytes: 2 * resource.size, notModified: 4))
    }

    @Test("A resource that varies has a body and a tag for each language, and a Vary field")
    func varying() async throws {
        let origin = makeOrigin()
        let resource = try first(.varying)
        var tags = Set<String>()
        var bodies = Set<ByteChunk>()
        for language in Language.allCases {
            let request = try request(resource, ["Accept-Language": language.rawValue])
            let response = try await origin.respond(to: request, body: .none)
            #expect(response.fields[.vary] == "Accept-Language")
            #expect(response.fields[.contentLanguage] == language.rawValue)
            #expect(response.fields[.cacheControl] == "max-age=\(resource.maxAge)")
            tags.insert(try #require(response.fields[.eTag]))
            bodies.insert(try await response.body.collect())
        }
        #expect(tags.count == 3)
        #expect(bodies.count == 3)
    }

    @Test("An uncacheable resource has no-store and no validator")
    func unstorable() async throws {
        let resource = try first(.unstorable)
        let response = try await makeOrigin().respond(to: request(resource), body: .none)
        #expect(response.fields[.cacheControl] == "no-store")
        #expect(response.fields[.eTag] == nil)
    }

    @Test(
        "Failing requests are counted with the others: a 503, with and without Retry-After, or a broken connection"
    )
    func failures() async throws {
        let origin = makeOrigin(failShare: 0.9)
        var forms = Set<String>()
        for number in 0..<200 {
            do {
                let response = try await origin.respond(to: request(resources[number % 40]), body: .none)
                if response.status == .serviceUnavailable { forms.insert(response.fields[.retryAfter] ?? "none") }
            } catch let error as ServiceError {
                #expect(error.code == .connectionLost)
                #expect(error.progress == .bodySent)
                forms.insert("dropped")
            }
        }
        #expect(forms == ["none", "0", "1", "dropped"])
        #expect(origin.traffic.sends == 200)
    }

    @Test(
        "An unknown resource gives a 404 and is counted",
        arguments: ["http://pmapi/origin/resources/40", "http://pmapi/origin/x", "http://pmapi/", "http://pmapi/-1"]
    )
    func notFound(_ url: String) async throws {
        let origin = makeOrigin()
        #expect(try await origin.respond(to: request(url), body: .none).status == .notFound)
        #expect(origin.traffic.sends == 1)
    }

    @Test("Each run gets a new origin, through a router")
    func target() async throws {
        let target = OriginTarget(resources: 4, failShare: 0, seed: 1, clock: InstantClock())
        let call = Call(resource: 3, language: .french, isFirstOfResource: true)
        let connection = target.connect()
        let response = try await connection.transport.send(
            target.request(for: call),
            body: .none,
            context: CallContext(clock: InstantClock())
        )
        #expect(response.status == .ok)
        #expect(connection.traffic().sends == 1)
        #expect(target.connect().traffic() == Traffic())
        #expect(target.request(for: call).value(forHTTPHeaderField: "Accept-Language") == "fr")
    }
}

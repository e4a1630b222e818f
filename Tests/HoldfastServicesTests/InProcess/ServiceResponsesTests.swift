// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a service called, in order.
private final class Calls: Sendable {
    enum Call: Equatable {
        case response(Int, [String: String], URL?)
        case data(String?)
        case complete
    }

    private let calls = Mutex<[Call]>([])

    var all: [Call] { calls.withLock { $0 } }

    func responseReturn(_ response: HTTPURLResponse) {
        var fields: [String: String] = [:]
        for case (let name as String, let value as String) in response.allHeaderFields { fields[name] = value }
        let call = Call.response(response.statusCode, fields, response.url)
        calls.withLock { $0.append(call) }
    }

    func dataReturn(_ data: Data?) {
        calls.withLock { $0.append(.data(data.map { String(decoding: $0, as: UTF8.self) })) }
    }

    func complete() { calls.withLock { $0.append(.complete) } }

    var fields: [String: String] {
        guard case .response(_, let fields, _) = all.first else { return [:] }
        return fields
    }
}

@Suite("respondWithErrorStatus and createResponse", .timeLimit(.minutes(20)))
struct ServiceResponsesTests {
    private let url = URL(string: "http://pmapi/foo/bar")

    private func base(_ fields: [String: String]) throws -> HTTPURLResponse {
        let url = try #require(url)
        return try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: Http.version, headerFields: fields)
        )
    }

    private func fields(_ response: HTTPURLResponse) -> HeaderFields {
        var texts: [String: String] = [:]
        for case (let name as String, let value as String) in response.allHeaderFields { texts[name] = value }
        return HeaderFields(texts)
    }

    @Test("P-T20: a new status, the same URL, the fields kept")
    func status() throws {
        let response = Foo.createResponse(.notFound, response: try base(["A": "1"]))
        #expect(response.statusCode == 404)
        #expect(response.url == url)
        #expect(fields(response) == ["A": "1"])
    }

    @Test("P-T21: the base's fields and the argument's fields are both present")
    func bothFields() throws {
        let base = try base(["A": "1"])
        #expect(
            fields(Foo.createResponse(.conflict, response: base, responseHeaders: ["B": "2"])) == ["A": "1", "B": "2"]
        )
        let calls = Calls()
        Foo.respondWithErrorStatus(
            .conflict,
            response: base,
            responseReturn: { calls.responseReturn($0) },
            requestComplete: { calls.complete() },
            responseHeaders: ["B": "2"]
        )
        #expect(calls.all == [.response(409, ["A": "1", "B": "2"], url), .complete])
    }

    @Test("P-T22: if a field is in both, the argument wins, letter case aside")
    func explicitFieldWins() throws {
        let base = try base(["content-type": "x", "A": "1"])
        let made = Foo.createResponse(.ok, response: base, responseHeaders: ["Content-Type": "y"])
        #expect(fields(made).values(of: "Content-Type") == ["y"])
        #expect(made.allHeaderFields.count == 2)
        let calls = Calls()
        Foo.respondWithErrorStatus(
            .badRequest,
            base,
            { calls.responseReturn($0) },
            { calls.complete() },
            ["CONTENT-TYPE": "y"]
        )
        #expect(calls.fields.count == 2)
        #expect(calls.fields.first { $0.key.lowercased() == "content-type" }?.value == "y")
    }

    @Test("P-T23: nil for the fields is the same as the form without them")
    func noFields() throws {
        let base = try base(["A": "1"])
        let without = Foo.createResponse(.forbidden, response: base)
        let with = Foo.createResponse(.forbidden, response: base, responseHeaders: nil)
        #expect(fields(with) == fields(without))
        #expect(with.statusCode == without.statusCode)
        let (one, other) = (Calls(), Calls())
        Foo.respondWithErrorStatus(
            .forbidden,
            response: base,
            responseReturn: { one.responseReturn($0) },
            requestComplete: { one.complete() }
        )
        Foo.respondWithErrorStatus(
            .forbidden,
            response: base,
            responseReturn: { other.responseReturn($0) },
            requestComplete: { other.complete() },
            responseHeaders: nil
        )
        #expect(one.all == other.all)
        #expect(one.all == [.response(403, ["A": "1"], url), .complete])
    }

    @Test("P-T24: a description is sent as UTF-8 between response and completion")
    func description() throws {
        let calls = Calls()
        Foo.respondWithErrorStatus(
            .badRequest,
            description: "naïve",
            dataReturn: { calls.dataReturn($0) },
            response: try base(["Content-Type": "text/html"]),
            responseReturn: { calls.responseReturn($0) },
            requestComplete: { calls.complete() }
        )
        #expect(calls.all == [.response(400, ["Content-Type": "text/html"], url), .data("naïve"), .complete])
    }

    @Test(
        "P-T25: a description is text/plain; charset=utf-8 unless a type is given",
        arguments: [
            ([:], nil, "text/plain; charset=utf-8"),
            (["content-type": "text/html"], nil, "text/html"),
            ([:], ["content-type": "application/json"], "application/json"),
            (["Content-Type": "text/html"], ["content-type": "application/json"], "application/json"),
        ] as [([String: String], [String: String]?, String)]
    )
    func contentType(_ template: [String: String], _ explicit: [String: String]?, _ expected: String) throws {
        let (labelled, positional) = (Calls(), Calls())
        Foo.respondWithErrorStatus(
            .conflict,
            description: "text",
            dataReturn: { labelled.dataReturn($0) },
            response: try base(template),
            responseReturn: { labelled.responseReturn($0) },
            requestComplete: { labelled.complete() },
            responseHeaders: explicit
        )
        Foo.respondWithErrorStatus(
            .conflict,
            "text",
            { positional.dataReturn($0) },
            try base(template),
            { positional.responseReturn($0) },
            { positional.complete() },
            explicit
        )
        #expect(labelled.all == positional.all)
        #expect(HeaderFields(labelled.fields).values(of: .contentType) == [expected])
        #expect(labelled.all.dropFirst() == [.data("text"), .complete])
    }

    @Test("P-T26: the labeled and the positional form do the same")
    func forms() throws {
        let base = try base(["A": "1"])
        let (one, other) = (Calls(), Calls())
        Foo.respondWithErrorStatus(
            .notFound,
            response: base,
            responseReturn: { one.responseReturn($0) },
            requestComplete: { one.complete() }
        )
        Foo.respondWithErrorStatus(.notFound, base, { other.responseReturn($0) }, { other.complete() })
        Foo.respondWithErrorStatus(
            .methodNotAllowed,
            response: base,
            responseReturn: { one.responseReturn($0) },
            requestComplete: { one.complete() },
            responseHeaders: ["Allow": "GET, PUT"]
        )
        Foo.respondWithErrorStatus(
            .methodNotAllowed,
            base,
            { other.responseReturn($0) },
            { other.complete() },
            ["Allow": "GET, PUT"]
        )
        Foo.respondWithErrorStatus(
            .notSupported,
            description: "text",
            dataReturn: { one.dataReturn($0) },
            response: base,
            responseReturn: { one.responseReturn($0) },
            requestComplete: { one.complete() }
        )
        Foo.respondWithErrorStatus(
            .notSupported,
            "text",
            { other.dataReturn($0) },
            base,
            { other.responseReturn($0) },
            { other.complete() }
        )
        #expect(one.all == other.all)
        #expect(one.all.count == 7)
        #expect(one.all[2] == .response(405, ["A": "1", "Allow": "GET, PUT"], url))
    }

    @Test("An invalid field name, or a value that would end its line, is left out")
    func badFields() throws {
        let made = Foo.createResponse(.ok, response: try base([:]), responseHeaders: ["A B": "1", "C": "2"])
        #expect(fields(made) == ["C": "2"])
    }

    @Test("HTTP's reason phrases, and the library's own")
    func words() throws {
        #expect(Http.StatusCode.notSupported.statusCode == 505)
        #expect(Http.StatusCode(.serviceUnavailable).rawValue == 503)
        let codes: [Http.StatusCode] = [
            .ok, .created, .found, .temporaryRedirect, .badRequest, .unauthorized, .forbidden, .notFound,
            .methodNotAllowed, .conflict, .internalServerError, .notImplemented, .gatewayTimeout, .notSupported,
        ]
        let numbers = [200, 201, 302, 307, 400, 401, 403, 404, 405, 409, 500, 501, 504, 505]
        #expect(codes.map(\.rawValue) == numbers)
        #expect(Http.scheme == "http")
        #expect(Http.version == "HTTP/1.1")
        var request = URLRequest(url: try #require(url))
        #expect(Http.Method(request) == .get)
        request.httpMethod = "PATCH"
        #expect(Http.Method(request) == .unknown)
        #expect(Http.Method.put.requestMethod == .put)
        #expect(Http.Method.unknown.requestMethod == nil)
    }
}

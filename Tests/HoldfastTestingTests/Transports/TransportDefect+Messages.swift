// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Keeps what it received, and makes use of it.
private final class RememberingTransport: Transport {
    struct Memory {
        var responses: [URL?: Response] = [:]
        var cookie: String?
    }

    private let sound = URLSessionTransport()
    private let memory = Mutex(Memory())
    private let answer: @Sendable (Memory, inout URLRequest) -> Response?

    init(answer: @escaping @Sendable (Memory, inout URLRequest) -> Response?) { self.answer = answer }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var request = request
        if let kept = memory.withLock({ answer($0, &request) }) { return kept }
        var response = try await sound.send(request, body: body, context: context)
        response.body = ResponseBody(ByteChunk(Array(try await response.body.collect())))
        let kept = response
        memory.withLock { memory in
            memory.responses[request.url] = kept
            memory.cookie = kept.fields["Set-Cookie"]
        }
        return response
    }
}

extension TransportDefect {
    static let all = ofMessages + ofBodies + ofEndings
    private static let memoryless = "an equal request is sent again, without what a response set"

    private static let ofMessages: [TransportDefect] = [
        .ofRequests("makes every request a GET", foundBy: ["the method arrives as given"]) { $0.httpMethod = "GET" },
        .ofRequests("drops the query", foundBy: ["the target arrives as given"]) { request in
            guard let url = request.url, url.query != nil else { return }
            request.url = URL(string: String(url.absoluteString.prefix { $0 != "?" }))
        },
        .ofRequests("drops a field", foundBy: ["request fields arrive"]) {
            $0.setValue(nil, forHTTPHeaderField: "X-List")
        },
        .ofRequests("drops empty fields", foundBy: ["a request field with an empty value arrives"]) { request in
            for (name, value) in request.allHTTPHeaderFields ?? [:] where value.isEmpty {
                request.setValue(nil, forHTTPHeaderField: name)
            }
        },
        .ofRequests(
            "adds a credential that it hides",
            foundBy: ["the declared implicit fields are those that the transport adds"]
        ) {
            $0.setValue("Bearer x", forHTTPHeaderField: "Authorization")
        },
        .ofRequests(
            "adds a key that it hides",
            foundBy: ["the declared implicit fields are those that the transport adds"]
        ) {
            $0.setValue("x", forHTTPHeaderField: "X-Api-Key")
        },
        .ofResponses(
            "keeps one line of a name",
            foundBy: [
                "repeated response field lines are kept, or joined, in order",
                "Set-Cookie lines are kept, or joined, in order",
            ]
        ) { response, _ in
            for name in ["X-A", "Set-Cookie"] as [FieldName] {
                let first = response.fields[name]?.prefix { $0 != "," }
                response.fields[name] = first.map(String.init)
            }
        },
        .ofResponses(
            "has a body for HEAD",
            foundBy: ["a response to HEAD has its fields and no body, and the next exchange is correct"]
        ) { response, request in
            if request.httpMethod == "HEAD" { response.body = ResponseBody(ByteChunk([1])) }
        },
        .ofResponses(
            "drops the fields of a 304",
            foundBy: ["204 and 304 have their fields and no body, and the next exchange is correct"]
        ) { response, _ in
            if response.status == 304 { response.fields = HeaderFields() }
        },
        TransportDefect("caches", foundBy: [memoryless], make: { RememberingTransport { $0.responses[$1.url] } }),
        TransportDefect(
            "keeps cookies",
            foundBy: [memoryless],
            make: {
                RememberingTransport { memory, request in
                    request.setValue(memory.cookie, forHTTPHeaderField: "Cookie")
                    return nil
                }
            }
        ),
        .ofResponses(
            "knows the registered statuses only",
            foundBy: ["every status is returned with its body, even an unusual one"]
        ) { response, _ in
            if response.status.rawValue % 100 == 99 { response.status = 500 }
        },
        TransportDefect(
            "drops interim responses",
            foundBy: ["an interim response is reported or dropped, but never returned as the response"],
            declaring: { $0.reportsInterim = true },
            sending: { sound, request, body, context in
                let deaf = CallContext(clock: context.clock, deadline: context.attemptDeadline)
                return try await sound.send(request, body: body, context: deaf)
            }
        ),
        TransportDefect(
            "follows redirects",
            foundBy: ["redirects are returned, never followed"],
            sending: { sound, request, body, context in
                let response = try await sound.send(request, body: body, context: context)
                guard let location = response.fields["Location"] else { return response }
                return try await sound.send(
                    URLRequest(url: try #require(URL(string: location, relativeTo: request.url)).absoluteURL),
                    body: .none,
                    context: context
                )
            }
        ),
        .ofResponses(
            "wants a Location",
            foundBy: ["a redirect without Location is a response like any other"]
        ) { response, _ in
            if response.status == 302, !response.fields.contains("Location") {
                throw ServiceError(.protocolError, "no Location", progress: .headReceived)
            }
        },
        TransportDefect(
            "answers challenges",
            foundBy: ["Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "Bearer"].map {
                "a 401 is returned, and no credential is sent: \($0)"
            },
            sending: { sound, request, body, context in
                let response = try await sound.send(request, body: body, context: context)
                guard response.status == 401 else { return response }
                var second = request
                second.setValue("Basic eDp5", forHTTPHeaderField: "Authorization")
                return try await sound.send(second, body: body, context: context)
            }
        ),
        .ofResponses(
            "undoes codings and does not say so",
            foundBy: [
                "a gzip body is decoded and marked as decoded, or returned as received",
                "a gzip body is cached once, and is correct the second time",
            ]
        ) { response, _ in
            response.contentDecoded = false
        },
    ]
}
